/// Compression of messages, as two sides agree on it (RFC 7692).
package struct PermessageDeflate: Hashable, Sendable {
    /// What one side is ready to do.
    package struct Configuration: Hashable, Sendable {
        /// Of both directions, 9 to 15: 2 to that many bytes are remembered.
        package var windowBits = 12
        /// Whether messages may refer to earlier ones.
        package var keepsContext = true
        /// 1 to 9.
        package var level = 6
        /// Smaller messages go as they are.
        package var minimumSize = 64
        /// How many times its compressed size a message may have; nil for no bound but that of sizes.
        package var maximumExpansion: Int?

        package init() {}
    }

    static let name = "permessage-deflate"

    var serverForgets = false
    var clientForgets = false
    var serverWindowBits = 15
    var clientWindowBits = 15

    // MARK: A client

    /// What a client offers.
    static func offer(_ configuration: Configuration) -> String {
        var text = name
        if !configuration.keepsContext {
            text += "; client_no_context_takeover; server_no_context_takeover"
        }
        if configuration.windowBits < 15 {
            text += "; server_max_window_bits=\(configuration.windowBits)"
            return text + "; client_max_window_bits=\(configuration.windowBits)"
        }
        return text + "; client_max_window_bits"
    }

    /// What a server answered to the offer (RFC 7692 §7.1).
    init(
        accepting answer: HTTPParameterized, _ configuration: Configuration
    ) throws(WebSocketError) {
        guard answer.name == Self.name else {
            throw .violation("the server chose the extension \(answer.name), which was not offered")
        }
        let parameters = try Parameters(answer)
        serverForgets = parameters.serverForgets
        clientForgets = parameters.clientForgets || !configuration.keepsContext
        serverWindowBits = parameters.serverWindowBits ?? 15
        clientWindowBits = configuration.windowBits
        switch parameters.clientWindowBits {
        case nil: break
        case .some(nil): throw .violation("client_max_window_bits has no value in the answer")
        case .some(let bits?): clientWindowBits = min(clientWindowBits, bits)
        }
        if configuration.windowBits < 15, serverWindowBits > configuration.windowBits {
            throw .violation("the server wants a larger window than it was offered")
        }
        if !configuration.keepsContext, !serverForgets {
            throw .violation("the server ignores server_no_context_takeover")
        }
    }

    // MARK: A server

    /// The first of a client's offers that can be accepted, and the answer to it.
    static func accept(
        _ offers: [HTTPParameterized], _ configuration: Configuration
    ) -> (PermessageDeflate, answer: String)? {
        for offer in offers where offer.name == name {
            guard let parameters = try? Parameters(offer) else { continue }
            var agreed = PermessageDeflate(parameters, configuration)
            var text = name
            if agreed.serverForgets { text += "; server_no_context_takeover" }
            if agreed.clientForgets { text += "; client_no_context_takeover" }
            if parameters.serverWindowBits != nil || agreed.serverWindowBits < 15 {
                text += "; server_max_window_bits=\(agreed.serverWindowBits)"
            }
            if parameters.clientWindowBits != nil {
                text += "; client_max_window_bits=\(agreed.clientWindowBits)"
            } else {
                agreed.clientWindowBits = 15
            }
            return (agreed, text)
        }
        return nil
    }

    private init(_ parameters: Parameters, _ configuration: Configuration) {
        serverForgets = parameters.serverForgets || !configuration.keepsContext
        clientForgets = parameters.clientForgets || !configuration.keepsContext
        serverWindowBits = min(configuration.windowBits, parameters.serverWindowBits ?? 15)
        clientWindowBits = min(configuration.windowBits, (parameters.clientWindowBits ?? 15) ?? 15)
    }

    /// The parameters of RFC 7692 §7.1, each at most once and with a value that it may have.
    private struct Parameters {
        var serverForgets = false
        var clientForgets = false
        var serverWindowBits: Int?
        /// Present without a value: `.some(nil)`.
        var clientWindowBits: Int??

        init(_ extension: HTTPParameterized) throws(WebSocketError) {
            var seen: Set<String> = []
            for (name, value) in `extension`.parameters {
                guard seen.insert(name).inserted else {
                    throw .violation("\(name) stands twice in permessage-deflate")
                }
                switch (name, value) {
                case ("server_no_context_takeover", nil): serverForgets = true
                case ("client_no_context_takeover", nil): clientForgets = true
                case ("server_max_window_bits", let value?):
                    serverWindowBits = try Self.windowBits(value)
                case ("client_max_window_bits", nil): clientWindowBits = .some(nil)
                case ("client_max_window_bits", let value?):
                    clientWindowBits = .some(try Self.windowBits(value))
                default:
                    throw .violation(
                        "permessage-deflate has no parameter \(name)"
                            + (value.map { "=\($0)" } ?? ""))
                }
            }
        }

        /// 8 to 15, without a leading zero.
        private static func windowBits(_ text: String) throws(WebSocketError) -> Int {
            switch text {
            case "8": return 8
            case "9": return 9
            case "10", "11", "12", "13", "14", "15": return Int(text) ?? 15
            default: throw .violation("a window of \(text) bits: there are 8 to 15")
            }
        }
    }
}
