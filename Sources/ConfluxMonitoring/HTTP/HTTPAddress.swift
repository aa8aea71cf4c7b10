#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The address for metrics and health: an IP address or `localhost`, and a port.
package struct HTTPAddress: Sendable {
    /// The address in the system's form, as it is bound.
    let storage: [UInt8]
    /// Whether it is an IPv6 address.
    let isIPv6: Bool
    /// Whether only this machine can reach it: 127/8 and ::1.
    package let isLocal: Bool
    private let host: String
    private let port: UInt16

    /// Parses an address.
    ///
    /// - Parameter text: `127.0.0.1:7480`, `[::1]:7480`, `localhost:7480`; port 0 for a free one.
    /// - Throws: ``HTTPError`` if the text is not an address.
    package init(_ text: String) throws(HTTPError) {
        let invalid = HTTPError(
            code: .invalidAddress,
            message: """
                '\(text)' is not an HTTP address. Give an IP address, or localhost, and a port, \
                such as 127.0.0.1:7480 or [::1]:7480.
                """)
        guard let colon = text.lastIndex(of: ":") else { throw invalid }
        let digits = text[text.index(after: colon)...]
        guard let port = UInt16(digits), digits.allSatisfy(\.isNumber) else { throw invalid }
        var host = String(text[..<colon])
        if host == "localhost" { host = "127.0.0.1" }
        var ipv4 = in_addr()
        if inet_pton(AF_INET, host, &ipv4) == 1 {
            var address = sockaddr_in()
            #if canImport(Darwin)
                address.sin_len = UInt8(MemoryLayout<sockaddr_in>.size)
            #endif
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr = ipv4
            storage = withUnsafeBytes(of: address) { Array($0) }
            isIPv6 = false
            isLocal = UInt32(bigEndian: ipv4.s_addr) >> 24 == 127
        } else {
            guard host.hasPrefix("["), host.hasSuffix("]") else { throw invalid }
            var ipv6 = in6_addr()
            guard inet_pton(AF_INET6, String(host.dropFirst().dropLast()), &ipv6) == 1 else {
                throw invalid
            }
            var address = sockaddr_in6()
            #if canImport(Darwin)
                address.sin6_len = UInt8(MemoryLayout<sockaddr_in6>.size)
            #endif
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = ipv6
            storage = withUnsafeBytes(of: address) { Array($0) }
            isIPv6 = true
            isLocal = withUnsafeBytes(of: ipv6) {
                $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1
            }
        }
        self.host = host
        self.port = port
    }

    /// The address with the port that was bound.
    func text(port: UInt16) -> String { "\(host):\(port)" }

    /// The address as it was given.
    var text: String { text(port: port) }
}
