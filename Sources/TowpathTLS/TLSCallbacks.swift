internal import CTowpathOpenSSL

/// What OpenSSL calls, on the thread that drives the engine.
enum TLSCallbacks {
    typealias Verify =
        @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32

    static let verify: Verify = { store, _ in
        guard let store,
            let ssl = X509_STORE_CTX_get_ex_data(
                store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let engine = TLSEngine.of(OpaquePointer(ssl))
        else { return 0 }
        return engine.verify(store)
    }

    static let chooseIdentity: Verify = { ssl, _ in
        guard let ssl, let engine = TLSEngine.of(ssl) else { return 0 }
        return engine.chooseIdentity() ? 1 : 0
    }

    static let keepSession: @convention(c) (OpaquePointer?, OpaquePointer?) -> Int32 = {
        ssl, session in
        guard let ssl, let session, let keep = TLSEngine.of(ssl)?.onSession else { return 0 }
        keep(TLSSession(owning: session))
        return 1
    }

    typealias ChooseProtocol =
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
            UnsafeMutablePointer<UInt8>?, UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
        ) -> Int32

    /// The server's order counts; nothing in common ends the handshake (RFC 7301 §3.2).
    static let chooseProtocol: ChooseProtocol = { ssl, chosen, count, offered, offeredCount, _ in
        guard let ssl, let chosen, let count, let engine = TLSEngine.of(ssl) else {
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
        let own = engine.context.applicationProtocols
        var result: UnsafeMutablePointer<UInt8>?
        let isFound = own.withUnsafeBufferPointer { own in
            SSL_select_next_proto(
                &result, count, own.baseAddress, UInt32(own.count), offered, offeredCount)
                == OPENSSL_NPN_NEGOTIATED
        }
        guard isFound, let result, let offered else {
            engine.notedError = TLSError(
                .handshake,
                "the client offers none of the application protocols"
                    + " \(engine.context.configuration.applicationProtocols)")
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
        // It points into our list, which may move: the same name stands in what was offered.
        chosen.pointee = engine.sameProtocol(
            UnsafeBufferPointer(start: result, count: Int(count.pointee)),
            in: UnsafeBufferPointer(start: offered, count: Int(offeredCount)))
        return SSL_TLSEXT_ERR_OK
    }

    typealias Status = @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32

    static let checkStaple: Status = { ssl, _ in
        guard let ssl, let engine = TLSEngine.of(ssl) else { return 0 }
        return engine.checkStaple() ? 1 : 0
    }

    static let staple: Status = { ssl, _ in
        guard let ssl, let engine = TLSEngine.of(ssl) else { return SSL_TLSEXT_ERR_NOACK }
        let response = engine.context.configuration.stapledResponse
        let isSet = ossl_set_status_response(ssl, response, response.count) == 1
        return isSet ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK
    }

    typealias OfferKey =
        @convention(c) (
            OpaquePointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<CChar>?, UInt32,
            UnsafeMutablePointer<UInt8>?, UInt32
        ) -> UInt32

    static let offerKey: OfferKey = { ssl, _, identity, identityRoom, key, keyRoom in
        guard let ssl, let identity, let key, let engine = TLSEngine.of(ssl),
            let own = engine.context.configuration.preSharedKeys.first,
            own.identity.utf8.count < Int(identityRoom), own.key.count <= Int(keyRoom)
        else { return 0 }
        let name = own.identity.utf8CString
        for index in name.indices { identity[index] = name[index] }
        for index in own.key.indices { key[index] = own.key[index] }
        return UInt32(own.key.count)
    }

    typealias FindKey =
        @convention(c) (
            OpaquePointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<UInt8>?, UInt32
        ) -> UInt32

    static let findKey: FindKey = { ssl, identity, key, room in
        guard let ssl, let identity, let key, let engine = TLSEngine.of(ssl) else { return 0 }
        let name = String(cString: identity)
        guard
            let own = engine.context.configuration.preSharedKeys.first(where: {
                $0.identity == name
            }), own.key.count <= Int(room)
        else { return 0 }
        for index in own.key.indices { key[index] = own.key[index] }
        return UInt32(own.key.count)
    }

    static let logKey: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> Void = {
        ssl, line in
        guard let ssl, let line, let engine = TLSEngine.of(ssl),
            let path = engine.context.configuration.keyLogFile
        else { return }
        ossl_key_log_append(path, line)
    }
}
