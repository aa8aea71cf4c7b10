import ConfluxSystem

/// An address that a socket binds or connects to: `tcp://host:port` or `ipc:///path`.
///
/// Parsing rejects what can't be right before the system sees it, with a message that says what to
/// write instead. It resolves no names.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// The transport, and the address in it.
    public enum Transport: Hashable, Sendable {
        /// TCP. The host is a name, an IPv4 address, an IPv6 address without its brackets, or `*`
        /// for every interface (only to bind). With port 0 the system chooses a port (only to
        /// bind).
        case tcp(host: String, port: UInt16)
        /// A Unix socket at this path.
        case ipc(path: String)
    }

    /// The transport, and the address in it.
    public let transport: Transport

    /// The longest path of a Unix socket, in bytes: the smaller of the limits of Linux and macOS.
    static let ipcPathBytesMax = 103
    static let hostBytesMax = 253

    /// Parses an endpoint.
    ///
    /// - Parameter text: `tcp://host:port`, or only `host:port`, where the port is 0–65535 or `*` (which is 0); or
    ///   `ipc://` and an absolute path. Write an IPv6 address in brackets.
    /// - Throws: `invalidEndpoint`, saying what is wrong with it.
    public init(_ text: String) throws(ZeroMQError) {
        if let rest = Self.rest(of: Self.whole(text), after: "tcp://") {
            transport = try Self.parseTCP(rest, of: text)
        } else if let path = Self.rest(of: text, after: "ipc://") {
            guard !path.isEmpty, path.utf8.count <= Self.ipcPathBytesMax, !path.utf8.contains(0)
            else {
                throw Self.invalid(
                    text, "the path has 1 to \(Self.ipcPathBytesMax) bytes, as in ipc:///run/feed")
            }
            // libzmq takes @ for an abstract socket and * for a path of the system's choice. A relative path would be
            // another file in a process with another folder, and the sequencer tells nodes its feed's address.
            guard Folder.isAbsolute(path) else {
                throw Self.invalid(
                    text,
                    """
                    the path must begin with /, as in ipc:///run/feed. Relative paths, and libzmq's @name \
                    and *, are not supported
                    """)
            }
            transport = .ipc(path: path)
        } else {
            throw Self.invalid(text, "write host:port, tcp://host:port or ipc:///path")
        }
    }

    /// The address with its transport: `host:port` is short for `tcp://host:port`.
    package static func whole(_ text: String) -> String {
        text.contains("://") || !text.contains(":") ? text : "tcp://\(text)"
    }

    /// Makes a TCP endpoint.
    ///
    /// - Parameters:
    ///   - host: A name, an IPv4 address, an IPv6 address without brackets, or `*`.
    ///   - port: The port; 0 lets the system choose when binding.
    /// - Throws: `invalidEndpoint` for an invalid host.
    public init(host: String, port: UInt16) throws(ZeroMQError) {
        let written = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        try self.init("tcp://\(written):\(port)")
    }

    /// The port of a TCP endpoint; nil for another transport.
    public var port: UInt16? {
        if case .tcp(_, let port) = transport { port } else { nil }
    }

    /// The host of a TCP endpoint, an IPv6 address without brackets; nil for another transport.
    public var host: String? {
        if case .tcp(let host, _) = transport { host } else { nil }
    }

    /// Whether one can bind to it but not connect: `*`, or a port that the system chooses.
    public var isWildcard: Bool {
        if case .tcp(let host, let port) = transport { host == "*" || port == 0 } else { false }
    }

    /// The most addresses in a list.
    public static let listMax = 16

    /// Parses addresses that are separated by commas.
    ///
    /// - Parameter text: One address or several, up to ``listMax``, each as ``init(_:)`` takes it.
    /// - Returns: The addresses in their order, at least one.
    /// - Throws: `invalidEndpoint`, saying which address is wrong, and how.
    public static func list(_ text: String) throws(ZeroMQError) -> [Endpoint] {
        let texts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard texts.count <= listMax else {
            throw ZeroMQError(
                .invalidEndpoint, "\(texts.count) addresses are too many: give \(listMax) at most.")
        }
        var endpoints: [Endpoint] = []
        for text in texts { endpoints.append(try Endpoint(String(text))) }
        return endpoints
    }

    /// Checks that one can connect to it.
    ///
    /// - Throws: `invalidEndpoint` for `*` and port 0.
    package func requireConnectable() throws(ZeroMQError) {
        guard isWildcard else { return }
        throw ZeroMQError(
            .invalidEndpoint,
            "\(self) cannot be connected to: give the host and port of the other side.")
    }

    /// This endpoint, with a host in place of `*`.
    ///
    /// - Parameter host: The host, an IPv6 address without brackets; nil for this machine.
    /// - Returns: An endpoint that you can connect to; this one if it has no `*`.
    /// - Throws: `invalidEndpoint` for an invalid host.
    public func replacingWildcard(with host: String?) throws(ZeroMQError) -> Endpoint {
        guard self.host == "*", let port else { return self }
        return try Endpoint(host: host ?? "127.0.0.1", port: port)
    }

    /// Whether only this machine can reach it.
    public var isLocal: Bool {
        guard case .tcp(let host, _) = transport else { return true }
        // 127/8, ::1 and the name that stands for them.
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        let isLoopback =
            parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
        return host == "localhost" || host == "::1" || isLoopback
    }

    var isIPv6Literal: Bool { host?.utf8.contains(UInt8(ascii: ":")) ?? false }

    /// The endpoint as text, in the form that ``init(_:)`` parses.
    public var description: String {
        switch transport {
        case .tcp(let host, let port):
            isIPv6Literal ? "tcp://[\(host)]:\(port)" : "tcp://\(host):\(port)"
        case .ipc(let path): "ipc://\(path)"
        }
    }

    private static func parseTCP(
        _ rest: String, of text: String
    ) throws(ZeroMQError) -> Transport {
        guard let colon = rest.lastIndex(of: ":") else {
            throw invalid(text, "the port is missing, as in tcp://127.0.0.1:7400")
        }
        let portText = rest[rest.index(after: colon)...]
        let port: UInt16
        if portText == "*" {
            port = 0
        } else if portText.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        ),
            let number = UInt16(portText)
        {
            port = number
        } else {
            throw invalid(
                text, "the port is a number from 0 to 65535, or * to let the system choose")
        }
        var host = rest[..<colon]
        if host.hasPrefix("[") {
            guard host.hasSuffix("]") else { throw invalid(text, "the bracket is not closed") }
            host = host.dropFirst().dropLast()
            let isAddress = host.utf8.allSatisfy {
                isLetterOrDigit($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
                    || $0 == UInt8(ascii: "%")
            }
            guard host.utf8.contains(UInt8(ascii: ":")), isAddress else {
                throw invalid(text, "an IPv6 address is expected in the brackets, as in [::1]")
            }
        } else if host.utf8.contains(UInt8(ascii: ":")) {
            throw invalid(text, "an IPv6 address stands in brackets, as in tcp://[::1]:7400")
        } else if host != "*" {
            let isName = host.utf8.allSatisfy {
                isLetterOrDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
                    || $0 == UInt8(ascii: "_")
            }
            guard !host.isEmpty, isName else {
                throw invalid(text, "the host is a name, an IP address, or * to bind to all")
            }
        }
        guard host.utf8.count <= hostBytesMax else {
            throw invalid(text, "the host has more than \(hostBytesMax) bytes")
        }
        return .tcp(host: String(host), port: port)
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }

    private static func rest(of text: String, after prefix: String) -> String? {
        text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil
    }

    private static func invalid(_ text: String, _ reason: String) -> ZeroMQError {
        let shown = text.count > 120 ? text.prefix(120) + "…" : text[...]
        return ZeroMQError(.invalidEndpoint, "\"\(shown)\" is not an endpoint: \(reason).")
    }
}
