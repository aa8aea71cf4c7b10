import Foundation
import Spawning
import Synchronization

/// Keeps a fixed number of connections open that never complete their handshake, and replaces those that end.
final class HalfOpenFlood: Sendable {
    private let source: String?
    private let bytes: @Sendable (Int) -> [UInt8]
    private let isOver = Atomic<Bool>(false)
    private let made = Atomic<Int>(0)
    /// Finishes once more connections were made than are kept open at a time.
    let begun: AsyncStream<Void>
    private let tellBegun: AsyncStream<Void>.Continuation

    /// Makes a flood.
    ///
    /// - Parameters:
    ///   - source: The address that it comes from; nil for the one that the system chooses.
    ///   - bytes: What the connection with a number sends. Otherwise most send the whole greeting, some send a part of
    ///     it, and some send an invalid HELLO.
    init(
        from source: String? = nil,
        sending bytes: @escaping @Sendable (Int) -> [UInt8] = HalfOpenFlood.beginning(of:)
    ) {
        self.source = source
        self.bytes = bytes
        (begun, tellBegun) = AsyncStream.makeStream()
    }

    /// How many connections were made.
    var count: Int { made.load(ordering: .relaxed) }

    /// Ends the flood soon.
    func stop() { isOver.store(true, ordering: .relaxed) }

    /// Keeps `count` connections with each of the addresses open, on the calling thread, until it is stopped.
    func run(against addresses: [String], count: Int) throws {
        let ports = try addresses.map { address in
            guard let port = address.split(separator: ":").last.flatMap({ UInt16($0) }) else {
                throw Failure("no port: \(address)")
            }
            return port
        }
        var open: [Int32] = []
        defer {
            tellBegun.finish()
            for descriptor in open { Self.reset(descriptor) }
        }
        while !isOver.load(ordering: .relaxed) {
            for port in ports {
                let number = made.add(1, ordering: .relaxed).newValue
                if let descriptor = connect(port, bytes(number)) { open.append(descriptor) }
            }
            if self.count >= 3 * count { tellBegun.finish() }
            if open.count > count * ports.count {
                for descriptor in open.prefix(count / 4) { Self.reset(descriptor) }
                open.removeFirst(count / 4)
            }
        }
    }

    private static func beginning(of number: Int) -> [UInt8] {
        switch number % 4 {
        case 0: [0xFF, 0, 0]
        case 1: []
        case 2: greeting
        default: greeting + [4, 200, 5] + Array("HELLO".utf8)
        }
    }

    /// The greeting of either side.
    static let greeting: [UInt8] =
        [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 0] + Array("CURVE".utf8)
        + [UInt8](repeating: 0, count: 47)

    private func connect(_ port: UInt16, _ bytes: [UInt8]) -> Int32? {
        let descriptor = tcpSocket()
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        var place = loopback(port)
        let isConnected =
            bindToSource(descriptor)
            && withUnsafePointer(to: &place) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Foundation.connect(descriptor, $0, size) == 0
                }
            }
        guard isConnected else {
            close(descriptor)
            return nil
        }
        #if canImport(Darwin)
            let flags: Int32 = 0
        #else
            let flags = Int32(MSG_NOSIGNAL)
        #endif
        _ = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, flags) }
        return descriptor
    }

    private func bindToSource(_ descriptor: Int32) -> Bool {
        guard let source else { return true }
        var place = loopback(0)
        place.sin_addr.s_addr = inet_addr(source)
        return withUnsafePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    /// Closes the connection at once, so that its port isn't occupied for a minute.
    private static func reset(_ descriptor: Int32) {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        close(descriptor)
    }
}
