internal import TowpathTLS

extension NetworkError {
    init(_ error: TLSError, _ stage: Stage) {
        let other: Cause? = error.reasons.isEmpty ? nil : .openSSL(error.reasons)
        let (code, cause): (Code, Cause?) =
            switch error.kind {
            case .configuration: (.optionFailed, other)
            case .certificate(let code): (.certificateInvalid, .verification(code: code))
            case .pinMismatch: (.pinMismatch, nil)
            case .rejected: (.peerRejected, nil)
            case .alert(let number): (.refusedByPeer, .alert(number))
            case .truncated: (.truncated, nil)
            case .notTLS: (.notTLS, other)
            case .handshake: (.handshakeFailed, other)
            }
        self.init(code, stage, error.description, cause: cause)
    }
}
