import CZeroMQ
import ConfluxProtocol
import ConfluxVocabulary
import Foundation

/// One kind of attack. Several hostile peers make it at the same time, until a deadline.
enum Flood: String, CaseIterable, Sendable {
    case hellos, newSessions, submissions, noise, emptyMessages, parts, halves, halvesWithinTheLimit
    case pingsAndResets, connections
    case subscriptions, partsAtTheFeed, subscriptionsAndResets

    /// How many peers attack at the same time.
    static let peers = 3

    /// Makes the attack on the calling thread.
    ///
    /// - Throws: ``Failure`` as soon as no more connections can be made.
    func run(against place: FloodPlace, until end: ContinuousClock.Instant) throws {
        var rounds = 0
        while ContinuousClock.now < end {
            try round(place, end)
            rounds += 1
            // Each round makes a connection, and each connection occupies a port for a minute.
            guard rounds < 2_000 else { return }
        }
    }

    private func round(_ place: FloodPlace, _ end: ContinuousClock.Instant) throws {
        let header = RawPeer.header(version: 1, kind: 0x01)
        let message = [0, UInt8(header.count + 1)] + header + [9]
        switch self {
        case .hellos, .newSessions:
            // Nobody reads the answers. The connection is reset after some of them have arrived.
            let nonce = Nonce.random()
            let peer = try RawPeer(ZMQ_DEALER, receivesAtMost: 1)
            try peer.connect(place.address)
            for request in 1...50_000 as ClosedRange<UInt64> where ContinuousClock.now < end {
                let hello = Hello(
                    request: request, nonce: self == .hellos ? nonce : .random(), name: nil,
                    role: .member)
                guard peer.send(Frame.encode(.hello(hello), by: .unwelcomed)) else { return }
            }
        case .submissions:
            guard let node = try? RawNode(at: place.address, receivesAtMost: 1) else { return }
            let large = node.submission(payloadBytes: 256 << 10)
            for _ in 0..<1_000 where ContinuousClock.now < end {
                guard node.peer.send(large) else { return }
            }
        case .noise: try pour(message, place.address, "DEALER", end)
        case .emptyMessages: try pour([0, 0], place.address, "DEALER", end)
        case .parts: try pour([1, 0], place.address, "DEALER", end)
        case .partsAtTheFeed: try pour([1, 0], place.feed, "SUB", end)
        case .halves: try hold(64 << 20, place, end)
        case .halvesWithinTheLimit: try hold(16 << 20, place, end)
        case .pingsAndResets:
            // Pings after messages that nobody has received yet, and then a reset.
            let ping: [UInt8] = [4, 7, 4] + Array("PING".utf8) + [0, 0]
            try pour(
                message + message + message + ping, place.address, "DEALER", end, count: 10_000)
        case .connections:
            for _ in 0..<10 {
                let connection = try RawConnection(to: place.address)
                connection.reset()
            }
        case .subscriptions:
            let peer = try RawPeer(ZMQ_XSUB)
            try peer.connect(place.feed)
            for number in 0..<1_000_000 where ContinuousClock.now < end {
                let text =
                    "\u{1}\(number) of many subscriptions \(UInt64.random(in: 0...UInt64.max))"
                guard peer.send(Array(text.utf8)) else { return }
            }
        case .subscriptionsAndResets:
            let connection = try RawConnection(to: place.feed)
            guard connection.shakeHands(as: "SUB") else { return }
            for _ in 0..<100 { connection.send([0, 1, 1, 0, 1, 0]) }
            connection.reset()
        }
    }

    /// Sends the same bytes again and again, and then resets the connection.
    private func pour(
        _ thing: [UInt8], _ address: String, _ type: String, _ end: ContinuousClock.Instant,
        count: Int = 1_000_000
    ) throws {
        let connection = try RawConnection(to: address)
        guard connection.shakeHands(as: type) else { return }
        let things = [UInt8]((0..<1_000).map { _ in thing }.joined())
        for _ in 0..<count / 1_000 where ContinuousClock.now < end {
            guard connection.send(things) else { break }
        }
        connection.reset()
    }

    /// Sends most of a large frame on each of ten connections, and keeps them open.
    private func hold(_ bytes: Int, _ place: FloodPlace, _ end: ContinuousClock.Instant) throws {
        let most = [UInt8](repeating: 0, count: bytes / 16 * 15)
        try hold(most, frameBytes: bytes, 10, place, end)
    }

    private func hold(
        _ most: [UInt8], frameBytes: Int, _ count: Int, _ place: FloodPlace,
        _ end: ContinuousClock.Instant
    ) throws {
        let connection = try RawConnection(to: place.address)
        let size = (0..<8).map { UInt8(truncatingIfNeeded: frameBytes >> (56 - 8 * $0)) }
        if connection.shakeHands(as: "DEALER") {
            connection.send([2] + size)
            connection.send(most)
        }
        if count > 1 {
            try hold(most, frameBytes: frameBytes, count - 1, place, end)
        } else {
            connection.listen(until: end)
        }
        withExtendedLifetime(connection) {}
    }
}

/// The addresses that a flood attacks.
struct FloodPlace: Sendable {
    let address: String
    let feed: String
}
