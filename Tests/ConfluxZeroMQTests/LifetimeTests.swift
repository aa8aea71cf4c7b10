import ConfluxZeroMQ
import Testing

@Suite struct LifetimeTests {
    @Test func `a closed socket says so`() throws {
        let pair = try Pair()
        let peer = try pair.greet()
        pair.router.close()
        pair.dealer.close()
        #expect(code { _ = try pair.router.receive() } == .closed)
        #expect(code { _ = try pair.router.send([1], to: peer) } == .closed)
        #expect(code { _ = try pair.dealer.receive() } == .closed)
        #expect(code { _ = try pair.dealer.send([1]) } == .closed)
        #expect(code { try pair.dealer.connect(pair.endpoint) } == .closed)
    }

    @Test(
        arguments: [
            { $0.sendQueueMessages = 1_000_001 }, { $0.messageBytesMax = 0 },
            { $0.linger = .seconds(61) }, { $0.linger = .seconds(-1) },
            { $0.keepAliveIdle = .zero }, { $0.keepAliveInterval = .zero },
            { $0.reconnectInterval = .zero }, { $0.reconnectIntervalMax = .milliseconds(1) },
            { $0.connectTimeout = .zero }, { $0.unacknowledgedMax = .zero },
            { $0.heldBytesMax = 0 }, { $0.connectionsMax = 0 },
            { $0.handshakeInterval = .seconds(3_600) }, { $0.refusedIntervalMax = .zero },
            { $0.backlog = 0 },
        ] as [@Sendable (inout SocketSettings) -> Void])
    func `a setting outside its bounds is refused`(
        _ change: @Sendable (inout SocketSettings) -> Void
    ) throws {
        var settings = SocketSettings()
        try settings.validate()
        change(&settings)
        #expect(code { try settings.validate() } == .invalidSetting)
        #expect(code { _ = try ClientSocket(.dealer, settings: settings) } == .invalidSetting)
    }
}
