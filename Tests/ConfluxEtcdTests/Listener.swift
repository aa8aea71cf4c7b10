import Foundation
import Synchronization

/// Listens on a free port, and runs a test's function for each connection, on a new thread.
final class Listener: Sendable {
    let address: String
    private let descriptor: Int32

    init(_ serve: @escaping @Sendable (Int32) -> Void) throws {
        let descriptor = newSocket()
        var place = loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRINUSE) }
        self.descriptor = descriptor
        address = "127.0.0.1:\(UInt16(bigEndian: place.sin_port))"
        let thread = Thread {
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                let server = Thread { serve(connection) }
                server.start()
            }
        }
        thread.start()
    }

    /// Refuses all connections from now on.
    func refuse() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    deinit {
        refuse()
        close(descriptor)
    }
}

/// Passes on what a client and a server send. When it is told to withhold the server's answers, it reads
/// an answer and then ends the connection.
final class CuttingProxy: Sendable {
    private let listener: Listener
    private let cutsLeft: CutCount

    var address: String { listener.address }

    private final class CutCount: Sendable {
        private let left = Mutex(0)
        private let passing = Mutex(0)
        private let done = Mutex(0)
        private let before = Mutex<(@Sendable () -> Void)?>(nil)

        var count: Int { done.withLock { $0 } }

        func set(_ count: Int, _ passes: Int, _ tell: (@Sendable () -> Void)?) {
            before.withLock { $0 = tell }
            passing.withLock { $0 = passes }
            left.withLock { $0 = count }
        }

        func take() -> Bool {
            let isTaken = left.withLock { left in
                guard left > 0 else { return false }
                let passes = passing.withLock { passing in
                    defer { passing = max(0, passing - 1) }
                    return passing > 0
                }
                guard !passes else { return false }
                left -= 1
                return true
            }
            if isTaken {
                before.withLock { $0 }?()
                done.withLock { $0 += 1 }
            }
            return isTaken
        }
    }

    init(before server: String) throws {
        let parts = server.split(separator: ":")
        let port = UInt16(parts.last ?? "") ?? 0
        let count = CutCount()
        cutsLeft = count
        listener = try Listener { client in
            guard let server = connected(to: port) else {
                close(client)
                return
            }
            let up = Thread { relay(client, to: server) { _ in true } }
            up.start()
            // Short frames are not answers: settings, acknowledgements and pings have at most 40 bytes.
            relay(server, to: client) { $0 <= 40 || !count.take() }
            shutdown(client, Int32(SHUT_RDWR))
            shutdown(server, Int32(SHUT_RDWR))
        }
    }

    /// The number of withheld answers.
    var cutCount: Int { cutsLeft.count }

    /// Withholds the next answers.
    ///
    /// - Parameters:
    ///   - count: How many answers to withhold.
    ///   - passes: How many answers to pass on before.
    ///   - tell: Called before the connection of a withheld answer ends.
    func withhold(_ count: Int, passing passes: Int = 0, tell: (@Sendable () -> Void)? = nil) {
        cutsLeft.set(count, passes, tell)
    }

    /// Refuses all connections from now on.
    func refuse() { listener.refuse() }
}

/// A connection to a port of this machine; nil if nothing listens there.
func connected(to port: UInt16) -> Int32? {
    let server = newSocket()
    var place = loopback(port)
    let isConnected = withUnsafeMutablePointer(to: &place) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
    return isConnected ? server : nil
}

/// - Returns: Whether all bytes were sent.
func sendAll(_ bytes: ArraySlice<UInt8>, to socket: Int32) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
        let written = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, noSignal) }
        guard written > 0 else { return false }
        rest = rest.dropFirst(written)
    }
    return true
}

func relay(_ from: Int32, to: Int32, _ passes: (Int) -> Bool) {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = recv(from, &buffer, buffer.count, 0)
        guard count > 0, passes(count), sendAll(buffer[..<count], to: to) else { break }
    }
    shutdown(from, Int32(SHUT_RDWR))
    shutdown(to, Int32(SHUT_RDWR))
}

private func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
}

#if canImport(Darwin)
    private let noSignal: Int32 = 0
    private func newSocket() -> Int32 { socket(AF_INET, SOCK_STREAM, 0) }
#else
    private let noSignal = Int32(MSG_NOSIGNAL)
    private func newSocket() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }
#endif
