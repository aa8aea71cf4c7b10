import CZeroMQ
import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// Our sockets with libzmq's sockets at the other end, plain and encrypted.
@Suite struct PeerTests {
    private static let server = CurveKeyPair.random()
    private static let client = CurveKeyPair.random()
    private static let sizes = [0, 1, 200, 222, 223, 255, 256, 70_000, 1 << 20]

    private func client(_ isEncrypted: Bool) -> SocketSettings {
        var settings = SocketSettings.test
        if isEncrypted {
            settings.security = .client(Self.client, server: Self.server.publicKey)
        }
        return settings
    }

    private func server(_ isEncrypted: Bool) -> SocketSettings {
        var settings = SocketSettings.test
        if isEncrypted { settings.security = .server(Self.server) }
        return settings
    }

    private func frame(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    }

    private func connect(_ socket: ClientSocket, to peer: RawSocket) throws {
        try socket.connect(peer.endpoint)
        try wait(for: socket) {
            while !socket.isConnected, let event = try socket.receive() {
                if case .failed(let failure, _) = event { Issue.record("\(failure)") }
            }
            return socket.isConnected ? () : nil
        }
    }

    @Test(arguments: [false, true])
    func `a client talks to a router of libzmq's`(isEncrypted: Bool) throws {
        let router = try RawSocket(serving: ZMQ_ROUTER, key: isEncrypted ? Self.server : nil)
        let dealer = try ClientSocket(.dealer, settings: client(isEncrypted))
        try connect(dealer, to: router)
        for count in Self.sizes {
            #expect(try dealer.send(frame(count)) == .sent)
            while dealer.hasUnsent {
                try wait(for: dealer) {
                    let event = try dealer.receive()
                    #expect(event == nil)
                    return dealer.hasUnsent ? nil : ()
                }
            }
            let message = try router.awaitMessage()
            try #require(message.count == 2)
            #expect(message[1] == frame(count))
            try router.send([message[0], frame(count)])
            #expect(try wait(for: dealer) { try dealer.message() } == frame(count)[...])
        }
        // A message of several frames is skipped.
        #expect(try dealer.send([1]) == .sent)
        let route = try router.awaitMessage()[0]
        try router.send([route, [1], [2]])
        try router.send([route, [3]])
        #expect(try wait(for: dealer) { try dealer.message() } == [3])
        #expect(dealer.malformedCount == 1)
    }

    @Test func `a peer that sends many small messages has turns as short as others'`() throws {
        let router = try RouterSocket(settings: .test)
        let endpoint = try router.bind(Endpoint("tcp://127.0.0.1:0"))
        let streams = try (0..<2).map { _ in try RawStream(to: endpoint) }
        for stream in streams {
            try stream.shakeHands(as: "DEALER")
            try stream.send([0, 1, 1])
            try wait(for: router, pause: .milliseconds(5)) {
                if case .message(_, [1]) = try router.receive() { () } else { nil }
            }
        }
        // All of it has arrived before any of it is read: 30,000 empty messages, and one of another peer.
        try streams[0].send([UInt8](repeating: 0, count: 60_000))
        try streams[1].send([0, 1, 7])
        var others = 0
        try wait(for: router, pause: .milliseconds(5)) {
            while let input = try router.receive() {
                if case .message(_, [7]) = input { return () }
                others += 1
            }
            return nil
        }
        #expect(others <= 10_000)
    }

    @Test(arguments: [ZMQ_PUB, ZMQ_XPUB], [false, true])
    func `a client follows a publisher of libzmq's`(type: Int32, isEncrypted: Bool) throws {
        let publisher = try RawSocket(serving: type, key: isEncrypted ? Self.server : nil)
        let subscriber = try ClientSocket(.subscriber, settings: client(isEncrypted))
        try connect(subscriber, to: publisher)
        if type == ZMQ_XPUB { #expect(try publisher.awaitMessage() == [[1]]) }
        // A publisher that doesn't report subscriptions gets them after some time.
        try wait(for: subscriber, pause: .milliseconds(5)) {
            try publisher.send([[0]])
            while let body = try subscriber.message() {
                if body == [0] { return () }
            }
            return nil
        }
        for count in Self.sizes where count > 1 {
            try publisher.send([frame(count)])
            let heard = try wait(for: subscriber) {
                while let body = try subscriber.message() {
                    if body != [0] { return body as Bytes? }
                }
                return nil
            }
            #expect(heard == frame(count)[...])
        }
    }

    @Test func `a client answers the pings of libzmq`() throws {
        // Without an answer within 200 ms, libzmq would end the connection.
        let router = try RawSocket(
            serving: ZMQ_ROUTER,
            set: [(ZMQ_HEARTBEAT_IVL, 20), (ZMQ_HEARTBEAT_TIMEOUT, 200)])
        let dealer = try ClientSocket(.dealer, settings: client(false))
        try connect(dealer, to: router)
        let end = ContinuousClock.now + .milliseconds(600)
        let poller = Poller(waker: try Waker())
        _ = try poller.add(dealer)
        while ContinuousClock.now < end {
            _ = try poller.wait(timeout: end - ContinuousClock.now)
            while let event = try dealer.receive() { Issue.record("\(event)") }
        }
        #expect(try dealer.send([5]) == .sent)
        #expect(try router.awaitMessage().last == [5])
    }

    @Test func `a client reports a socket that accepts nothing from it`() throws {
        let publisher = try RawSocket(serving: ZMQ_XPUB)
        let dealer = try ClientSocket(.dealer, settings: client(false))
        try dealer.connect(publisher.endpoint)
        #expect(try wait(for: dealer) { try dealer.failure() } == .otherSocket)
    }

    @Test(arguments: [false, true])
    func `a dealer of libzmq's talks to our router`(isEncrypted: Bool) throws {
        let router = try RouterSocket(settings: server(isEncrypted))
        let dealer = try RawSocket(
            ZMQ_DEALER, keys: isEncrypted ? (Self.client, Self.server.publicKey) : nil,
            connectingTo: router.bind(Endpoint("tcp://127.0.0.1:0")))
        // Only frames that the system takes at once.
        for count in Self.sizes where count < 1 << 20 {
            try dealer.send([frame(count)])
            let input = try wait(for: router) { try router.receive() }
            guard case .message(let peer, let body) = input else {
                Issue.record("\(input)")
                return
            }
            #expect(body == frame(count)[...])
            #expect(router.key(of: peer) == (isEncrypted ? Self.client.publicKey : nil))
            #expect(try router.send(frame(count), to: peer) == .sent)
            #expect(try dealer.awaitMessage() == [frame(count)])
        }
    }

    @Test(arguments: [false, true])
    func `a subscriber of libzmq's follows our publisher, by its prefix`(isEncrypted: Bool) throws {
        let publisher = try PublisherSocket(settings: server(isEncrypted))
        let subscriber = try RawSocket(
            ZMQ_SUB, keys: isEncrypted ? (Self.client, Self.server.publicKey) : nil,
            connectingTo: publisher.bind(Endpoint("tcp://127.0.0.1:0")))
        try wait(for: publisher) {
            try publisher.receiveSubscriptions(limit: 1) > 0 ? () : nil
        }
        for number in 0..<100 as Range<UInt8> {
            try publisher.send([UInt8](repeating: number, count: 1_000)[...])
        }
        for number in 0..<100 as Range<UInt8> {
            #expect(try subscriber.awaitMessage() == [[UInt8](repeating: number, count: 1_000)])
        }
    }
}
