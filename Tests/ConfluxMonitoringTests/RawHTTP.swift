import Foundation
import Testing

/// A connection that can send anything, byte by byte.
final class RawHTTP {
    private let descriptor: Int32

    /// Connects to `127.0.0.1:port` or `[::1]:port`.
    init(_ address: String) throws {
        let colon = try #require(address.lastIndex(of: ":"))
        let port = try #require(UInt16(address[address.index(after: colon)...]))
        let isIPv6 = address.hasPrefix("[")
        #if canImport(Darwin)
            descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0)
        #else
            let kind = Int32(SOCK_STREAM.rawValue)
            descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, kind, 0)
        #endif
        var patience = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience,
            socklen_t(MemoryLayout<timeval>.size))
        var number: Int32
        if isIPv6 {
            var place = sockaddr_in6()
            place.sin6_family = sa_family_t(AF_INET6)
            place.sin6_port = port.bigEndian
            place.sin6_addr = in6addr_loopback
            number = Self.connect(descriptor, &place)
        } else {
            var place = sockaddr_in()
            place.sin_family = sa_family_t(AF_INET)
            place.sin_port = port.bigEndian
            place.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            number = Self.connect(descriptor, &place)
        }
        // `deinit` closes it in this case, too: all properties have a value.
        guard number == 0 else { throw Refused() }
    }

    struct Refused: Error {}

    deinit {
        close(descriptor)
    }

    private static func connect<Place>(_ descriptor: Int32, _ place: inout Place) -> Int32 {
        withUnsafePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<Place>.size))
            }
        }
    }

    /// - Returns: Whether the other side took all bytes.
    @discardableResult
    func send(_ text: String) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Whether nothing comes for half a second, neither bytes nor the end of the connection.
    var isOpen: Bool {
        var place = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&place, 1, 500) == 0
    }

    /// Closes the sending side.
    func endSending() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Reads everything until the other side ends the connection.
    func receiveAll() throws -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            // The other side may have ended the connection without reading everything.
            if count == 0 || (count < 0 && errno == ECONNRESET) { break }
            if count < 0, errno == EINTR { continue }
            try #require(count > 0, "nothing came: \(String(cString: strerror(errno)))")
            all += buffer[..<count]
        }
        return String(decoding: all, as: UTF8.self)
    }

    /// Sends one request, and returns its answer.
    static func ask(
        _ address: String, _ path: String, _ headers: [String] = []
    ) throws -> Answer {
        try ask(address, "GET", path, headers)
    }

    static func ask(
        _ address: String, _ method: String, _ path: String, _ headers: [String] = []
    ) throws -> Answer {
        let connection = try RawHTTP(address)
        let lines = ["\(method) \(path) HTTP/1.1", "Host: x", "Connection: close"] + headers
        connection.send(lines.map { "\($0)\r\n" }.joined() + "\r\n")
        return Answer(try connection.receiveAll())
    }

    struct Answer: Sendable {
        let status: Int?
        let head: String
        let body: String

        init(_ text: String) {
            let parts = text.components(separatedBy: "\r\n\r\n")
            head = parts[0]
            body = parts.dropFirst().joined(separator: "\r\n\r\n")
            let words = head.split(separator: " ")
            status = words.count > 1 ? Int(words[1]) : nil
        }
    }
}
