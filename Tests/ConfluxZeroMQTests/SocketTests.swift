import CZeroMQ
import ConfluxVocabulary
import ConfluxZeroMQ
import Testing

@Suite struct SocketTests {
    @Test(arguments: ["tcp://127.0.0.1:0", "tcp://*:*", "tcp://localhost:0"])
    func `binding reports the chosen port`(_ text: String) throws {
        let router = try RouterSocket(settings: .test)
        let endpoint = try router.bind(Endpoint(text))
        #expect(try #require(endpoint.port) > 0)
    }

    @Test func `an address in use is named`() throws {
        let pair = try Pair()
        let second = try RouterSocket(settings: .test)
        do {
            try second.bind(pair.endpoint)
            Issue.record("two sockets are bound to \(pair.endpoint)")
        } catch {
            #expect(error.code == .addressInUse)
            #expect(error.systemNumber == EADDRINUSE)
            #expect(error.message.contains(pair.endpoint.description))
        }
    }

    @Test func `an address of another machine can't be bound`() throws {
        let router = try RouterSocket(settings: .test)
        #expect(
            code { try router.bind(Endpoint("tcp://192.0.2.1:7400")) } == .addressNotAvailable)
        #expect(
            code { try router.bind(Endpoint("tcp://no-such-host.invalid:7400")) }
                == .addressNotAvailable)
    }

    @Test func `a wildcard cannot be connected to`() throws {
        let dealer = try ClientSocket(.dealer, settings: .test)
        #expect(code { try dealer.connect(Endpoint("tcp://*:7400")) } == .invalidEndpoint)
        #expect(code { try dealer.connect(Endpoint("tcp://host:0")) } == .invalidEndpoint)
    }

    @Test func `messages go both ways`() throws {
        let pair = try Pair()
        let peer = try pair.greet()
        let large = [UInt8](repeating: 9, count: 300_000)
        try pair.send(large[...])
        try pair.send([])
        #expect(try pair.receive() == .message(from: peer, body: large[...]))
        #expect(try pair.receive() == .message(from: peer, body: []))
        #expect(try pair.router.receive() == nil)

        #expect(try pair.router.send([1, 2, 3], to: peer) == .sent)
        #expect(try pair.router.send([1, 2, 3, 4], to: peer) == .sent)
        #expect(try pair.router.send(large, to: peer) == .sent)
        let received = try (0..<3).map { _ in try pair.hear() }
        #expect(received == [[1, 2, 3], [1, 2, 3, 4], large[...]])
        #expect(try pair.dealer.receive() == nil)
    }

    @Test func `IPv6 works if an address is given`() throws {
        let router = try RouterSocket(settings: .test)
        let dealer = try ClientSocket(.dealer, settings: .test)
        let endpoint: Endpoint
        do {
            endpoint = try router.bind(Endpoint("tcp://[::1]:0"))
        } catch {
            // On a machine without IPv6, the error must be one of these.
            #expect(error.code == .addressNotAvailable || error.code == .failed)
            return
        }
        #expect(endpoint.host == "::1")
        try dealer.connect(endpoint)
        try router.shakeHands(with: dealer)
        #expect(try dealer.send([7]) == .sent)
        let input = try wait(for: router) { try router.receive() }
        guard case .message(_, [7]) = input else {
            Issue.record("another message arrived")
            return
        }
    }

    @Test func `a peer that has left is unreachable`() throws {
        let pair = try Pair()
        let peer = try pair.greet()
        pair.dealer.close()
        let outcome = try wait(for: pair.router) {
            _ = try pair.router.receive()
            let outcome = try pair.router.send([1], to: peer)
            return outcome == .unreachable ? outcome : nil
        }
        #expect(outcome == .unreachable)
    }

    @Test func `a full queue of one peer is reported and another peer is served`() throws {
        var settings = SocketSettings.test
        // Enough room for a handshake.
        settings.sendQueueMessages = 4
        let pair = try Pair(router: settings, dealer: settings)
        let stalled = try pair.greet()
        let frame = [UInt8](repeating: 0, count: 1 << 20)
        // The first frames go into the system's buffers.
        var outcome = SendOutcome.sent
        for _ in 0..<200 where outcome == .sent {
            outcome = try pair.router.send(frame, to: stalled)
        }
        #expect(outcome == .wouldBlock)

        let healthy = try ClientSocket(.dealer, settings: settings)
        try healthy.connect(pair.endpoint)
        try pair.router.shakeHands(with: healthy, othersMayEnd: true)
        #expect(try healthy.send([2]) == .sent)
        var input = try pair.receive()
        while case .ended = input { input = try pair.receive() }
        guard case .message(let other, [2]) = input else {
            Issue.record("another message arrived")
            return
        }
        #expect(try pair.router.send([3], to: other) == .sent)
        #expect(try wait(for: healthy) { try healthy.message() } == [3])
    }

    @Test func `unread messages of a peer are bounded in bytes, and other peers are served`() throws
    {
        var settings = SocketSettings.test
        settings.sendQueueMessages = 10_000
        let pair = try Pair(router: settings, dealer: settings)
        let stalled = try pair.greet()
        let frame = [UInt8](repeating: 0, count: 1 << 20)
        var sent = 0
        var sentWithRoom = 0
        while sent < 1_000, try pair.router.send(frame, to: stalled) == .sent {
            sent += 1
            if pair.router.hasRoomForAnswers(to: stalled) { sentWithRoom += 1 }
        }
        // The first frames went into the system's buffers, and some reached the stalled peer.
        #expect((64..<200).contains(sent))
        #expect(pair.router.levels.queueBytes.level < 66 << 20)
        // There was no room for long answers before the queue was full.
        #expect((20..<sent - 20).contains(sentWithRoom))

        let healthy = try ClientSocket(.dealer, settings: settings)
        try healthy.connect(pair.endpoint)
        try pair.router.shakeHands(with: healthy)
        #expect(try healthy.send([2]) == .sent)
        guard case .message(let other, [2]) = try pair.receive() else {
            Issue.record("another message arrived")
            return
        }
        #expect(try pair.router.send(frame, to: other) == .sent)
        #expect(pair.router.hasRoomForAnswers(to: other))
        let heard = try wait(for: healthy, serving: pair.router) { try healthy.message() }
        #expect(heard == frame[...])
    }

    @Test func `without a connection nothing is queued`() throws {
        let router = try RouterSocket(settings: .test)
        let endpoint = try router.bind(Endpoint("tcp://127.0.0.1:0"))
        router.close()
        let dealer = try ClientSocket(.dealer, settings: .test)
        try dealer.connect(endpoint)
        #expect(try dealer.send([1]) == .wouldBlock)
    }

    @Test func `a message of several frames is skipped and reported`() throws {
        let pair = try Pair()
        let stranger = try RawSocket(ZMQ_DEALER, connectingTo: pair.endpoint)
        try stranger.send(["a", "b", "c"])
        try stranger.send(["whole"])
        guard case .malformed(let sender, let frames) = try pair.receive() else {
            Issue.record("it was taken for a message")
            return
        }
        #expect(frames == 3)
        #expect(try pair.receive() == .message(from: sender, body: Bytes("whole".utf8)))
        #expect(pair.router.malformedCount == 1)
    }

    @Test func `a client that sends more than the limit is cut off`() throws {
        var settings = SocketSettings.test
        settings.messageBytesMax = 1_000
        let pair = try Pair(router: settings)
        let peer = try pair.greet()
        try pair.send([UInt8](repeating: 0, count: 1_000)[...])
        guard case .message(peer, _) = try pair.receive() else {
            Issue.record("a message at the limit was not taken")
            return
        }
        try pair.send([UInt8](repeating: 0, count: 1_001)[...])
        let failure = try wait(for: pair.dealer, serving: pair.router) { try pair.dealer.failure() }
        #expect(failure == .ended)
        let outcome = try wait(for: pair.router) {
            _ = try pair.router.receive()
            let outcome = try pair.router.send([1], to: peer)
            return outcome == .unreachable ? outcome : nil
        }
        #expect(outcome == .unreachable)
    }

    @Test func `a client that keeps sending unreadable frames is cut off`() throws {
        let pair = try Pair()
        let peer = try pair.greet()
        for _ in 0..<70 { try pair.send([0]) }
        var refused = 0
        _ = try wait(for: pair.router) {
            while let input = try pair.router.receive() {
                #expect(input.peer == peer)
                if case .ended = input { return true }
                refused += 1
                try pair.router.refuse(input.peer)
            }
            return nil
        }
        // Its later frames are discarded.
        #expect(refused == 64)
        let failure = try wait(for: pair.dealer, serving: pair.router) { try pair.dealer.failure() }
        #expect(failure == .ended)
    }
}
