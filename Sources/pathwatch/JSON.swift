import Towpath

/// JSON (RFC 8259), as far as lines need it.
indirect enum JSON {
    case null
    case bool(Bool)
    case number(UInt64)
    case string(String)
    case array([JSON])
    /// In this order, so that people find things where they were.
    case object([(String, JSON)])

    var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .number(let value): String(value)
        case .string(let value): Self.quoted(value)
        case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { Self.quoted($0) + ":" + $1.text }.joined(separator: ",") + "}"
        }
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }

    static func strings(_ values: [String: String]) -> JSON {
        .object(values.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) })
    }
}

extension Path {
    var json: JSON {
        .object([
            ("status", .string(status.rawValue)),
            ("reason", unsatisfiedReason.map { .string($0.rawValue) } ?? .null),
            ("obstacle", obstacle.map { .string("\($0)") } ?? .null),
            ("interfaces", .array(interfaces.map(\.json))),
            ("gateways", .array(gateways.map { .string("\($0)") })),
            ("gatewayReachable", isGatewayReachable.map(JSON.bool) ?? .null),
            ("ipv4", .bool(supportsIPv4)), ("ipv6", .bool(supportsIPv6)),
            ("dns", .bool(supportsDNS)), ("expensive", .bool(isExpensive)),
            ("constrained", .bool(isConstrained)),
            ("ultraConstrained", .bool(isUltraConstrained)), ("degraded", .bool(isDegraded)),
            ("polled", .bool(isPolled)),
            ("local", localEndpoint.map { .string("\($0)") } ?? .null),
            ("remote", remoteEndpoint.map { .string("\($0)") } ?? .null),
        ])
    }
}

extension Path.Interface {
    fileprivate var json: JSON {
        .object([
            ("name", .string(name)), ("index", .number(UInt64(index))),
            ("type", .string(type.rawValue)), ("mtu", .number(UInt64(mtu))),
            ("addresses", .array(addresses.map { .string("\($0)") })),
        ])
    }
}
