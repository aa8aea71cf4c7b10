/// Where a log is: some members of one etcd cluster, and the prefix of the log's keys.
///
/// It is written `etcd://HOST:PORT,HOST:PORT/PREFIX`, or `etcds://…` for encrypted connections (TLS). The
/// default port is 2379. The prefix consists of one or more names, separated by `/`.
public struct EtcdAddress: Sendable, Hashable, CustomStringConvertible {
    /// The most members in an address.
    public static let membersMax = 16
    /// The most bytes of a prefix.
    static let prefixBytesMax = 256

    /// The members, each as `host:port`.
    public let members: [String]
    /// The prefix, which begins with `/` and does not end with it.
    public let prefix: String
    /// Whether connections are encrypted.
    public let isSecure: Bool

    /// Parses an address; nil if the text is not a valid one.
    public init?(_ text: String) {
        let scheme = ["etcd://", "etcds://"].first { text.hasPrefix($0) }
        guard let scheme else { return nil }
        let rest = text.dropFirst(scheme.count)
        guard let slash = rest.firstIndex(of: "/") else { return nil }
        let names = rest[..<slash].split(separator: ",", omittingEmptySubsequences: false)
        let members = names.compactMap(Self.member)
        let parts = rest[slash...].dropFirst().split(
            separator: "/", omittingEmptySubsequences: false)
        guard members.count == names.count, (1...Self.membersMax).contains(members.count),
            Set(members).count == members.count, rest[slash...].utf8.count <= Self.prefixBytesMax,
            !parts.isEmpty, parts.allSatisfy(Self.isName)
        else { return nil }
        self.members = members
        prefix = String(rest[slash...])
        isSecure = scheme == "etcds://"
    }

    private static func member(_ text: Substring) -> String? {
        let host: Substring
        let port: Substring
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[...end]
            port = text[text.index(after: end)...]
            guard host.dropFirst().dropLast().allSatisfy({ $0.isHexDigit || $0 == ":" }) else {
                return nil
            }
        } else {
            let end = text.firstIndex(of: ":") ?? text.endIndex
            host = text[..<end]
            port = text[end...]
            guard !host.isEmpty, host.utf8.allSatisfy(isPlain) else { return nil }
        }
        if port.isEmpty { return "\(host):2379" }
        guard port.hasPrefix(":"), port.dropFirst().utf8.allSatisfy({ 48...57 ~= $0 }),
            let number = UInt16(port.dropFirst()), number > 0
        else { return nil }
        return "\(host):\(number)"
    }

    /// A part of a prefix must not have the name of one of a log's own keys, so that no log can be inside
    /// another.
    private static func isName(_ part: Substring) -> Bool {
        !part.isEmpty && part.utf8.allSatisfy(isPlain) && !EtcdLayout.names.contains(String(part))
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
            UInt8(ascii: "."):
            true
        default: false
        }
    }

    /// Whether all members are on this machine.
    var isLocal: Bool {
        members.allSatisfy { member in
            ["127.0.0.1:", "localhost:", "[::1]:"].contains { member.hasPrefix($0) }
        }
    }

    /// The address, with the port of each member.
    public var description: String {
        "\(isSecure ? "etcds" : "etcd")://\(members.joined(separator: ","))\(prefix)"
    }
}
