import Foundation
import Spawning

/// A TCP connection that can send any bytes.
struct RawConnection: ~Copyable {
    private let descriptor: Int32

    /// Connects to `tcp://127.0.0.1:port`.
    init(to address: String) throws {
        guard let port = address.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw Failure("no port: \(address)")
        }
        let descriptor = tcpSocket()
        var place = loopback(port)
        let failure = withUnsafePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard failure == 0 else {
            close(descriptor)
            throw Failure("can't connect to \(address): \(systemError())")
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Sends the greeting and the READY command of a socket type, in ZMTP 3.0, and waits for the other side's
    /// greeting.
    ///
    /// - Returns: Whether the greeting arrived within five seconds.
    func shakeHands(as type: String) -> Bool {
        send(Self.greeting + Self.ready(as: type)) && takeGreeting()
    }

    /// Subscribes to everything, and takes no more than the other side's greeting.
    ///
    /// - Returns: Whether the greeting arrived within five seconds.
    func subscribe() -> Bool {
        // libzmq ends the connection if the rest comes together with the greeting.
        send(Self.greeting) && takeGreeting() && send(Self.ready(as: "SUB") + [0, 1, 1])
    }

    /// The greeting of a side that encrypts nothing.
    static let greeting: [UInt8] =
        [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 0] + Array("NULL".utf8)
        + [UInt8](repeating: 0, count: 48)

    /// The READY command of a socket type.
    static func ready(as type: String) -> [UInt8] {
        let property =
            Array("\u{5}READY\u{B}Socket-Type".utf8) + [0, 0, 0, UInt8(type.utf8.count)]
            + Array(type.utf8)
        return [4, UInt8(property.count)] + property
    }

    private func takeGreeting() -> Bool {
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var greeting = [UInt8](repeating: 0, count: 64)
        return recv(descriptor, &greeting, greeting.count, Int32(MSG_WAITALL)) == 64
    }

    /// Sends bytes. While the peer doesn't read, it waits up to a second for each piece.
    ///
    /// - Returns: Whether the peer took all bytes.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        return bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                #if canImport(Darwin)
                    let flags: Int32 = 0
                #else
                    let flags = Int32(MSG_NOSIGNAL)
                #endif
                let count = Foundation.send(
                    descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count,
                    flags)
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }
    }

    /// Reads until the peer closes the connection, or until a deadline.
    func listen(until end: ContinuousClock.Instant) {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while case let left = end - ContinuousClock.now, left > .zero {
            let (seconds, attoseconds) = left.components
            var limit = timeval(
                tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000) + 1)
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            guard recv(descriptor, &buffer, buffer.count, 0) > 0 else { return }
        }
    }

    /// Ends the connection by a reset, even if bytes are still in transit.
    func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
    }
}
