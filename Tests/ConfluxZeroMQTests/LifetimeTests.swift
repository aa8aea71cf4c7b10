import CZeroMQ
import ConfluxZeroMQ
import Testing

@Suite struct LifetimeTests {
    @Test func `a context ends once its sockets are closed`() throws {
        let context = try ZeroMQContext()
        let dealer = try DealerSocket(context, settings: .test)
        #expect(code { try context.terminate() } == .socketsOpen)
        dealer.close()
        dealer.close()
        #expect(dealer.isClosed)
        try context.terminate()
        try context.terminate()
        context.shutDown()
        #expect(code { _ = try DealerSocket(context) } == .terminated)
    }

    @Test func `a socket that could not be opened is not counted`() throws {
        let context = try ZeroMQContext(socketsMax: 1)
        var settings = SocketSettings()
        settings.sendQueueMessages = 0
        #expect(code { _ = try DealerSocket(context, settings: settings) } == .invalidSetting)
        let only = try DealerSocket(context, settings: .test)
        #expect(code { _ = try DealerSocket(context, settings: .test) } == .tooManyOpen)
        only.close()
        try context.terminate()
    }

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
        #expect(code { _ = try pair.dealer.openMonitor() } == .closed)
    }

    @Test func `after a shutdown every call says so and closing works`() throws {
        let pair = try Pair()
        let poller = Poller(waker: try Waker())
        _ = try poller.add(pair.dealer)
        pair.context.shutDown()
        pair.context.shutDown()
        #expect(code { _ = try pair.dealer.send([1]) } == .terminated)
        #expect(code { _ = try poller.wait() } == .terminated)
        pair.router.close()
        pair.dealer.close()
        try pair.context.terminate()
    }

    @Test func `a monitor that is not read does not keep anything open`() throws {
        let pair = try Pair()
        let monitor = try pair.dealer.openMonitor()
        #expect(try pair.dealer.openMonitor() === monitor)
        _ = try pair.greet()
        pair.dealer.close()
        #expect(monitor.isClosed)
        pair.router.close()
        try pair.context.terminate()
    }

    @Test func `a monitor tells of connecting and of the end`() throws {
        let pair = try Pair()
        let dealer = try DealerSocket(pair.context, settings: .test)
        // Watched before it connects, so that no event comes too early to be seen.
        let monitor = try dealer.openMonitor()
        try dealer.connect(pair.endpoint)
        var kinds: [SocketEvent.Kind] = []
        try wait(for: monitor, serving: pair.router) {
            while let event = try monitor.receive() { kinds.append(event.kind) }
            return kinds.contains(.handshakeSucceeded) ? () : nil
        }
        #expect(kinds.contains(.connected) && kinds.contains(.handshakeSucceeded))
        kinds = []
        pair.router.close()
        try wait(for: monitor) {
            while let event = try monitor.receive() { kinds.append(event.kind) }
            return kinds.contains(.disconnected) ? () : nil
        }
        monitor.close()
        monitor.close()
        let next = try dealer.openMonitor()
        #expect(next !== monitor)
        #expect(!next.isClosed)
    }

    @Test func `a monitor tells of attempts that fail`() throws {
        let context = try ZeroMQContext()
        let router = try RouterSocket(settings: .test)
        let endpoint = try router.bind(Endpoint("tcp://127.0.0.1:0"))
        router.close()
        let dealer = try DealerSocket(context, settings: .test)
        let monitor = try dealer.openMonitor()
        try dealer.connect(endpoint)
        let event = try wait(for: monitor) {
            while let event = try monitor.receive() {
                if case .retrying = event.kind { return event as SocketEvent? }
            }
            return nil
        }
        #expect(event.address == endpoint.description)
    }

    @Test(
        arguments: [
            { $0.receiveQueueMessages = 1_000_001 }, { $0.messageBytesMax = 0 },
            { $0.linger = .seconds(61) }, { $0.linger = .seconds(-1) },
            { $0.keepAliveIdle = .zero }, { $0.keepAliveInterval = .zero },
            { $0.reconnectInterval = .zero }, { $0.reconnectIntervalMax = .milliseconds(1) },
            { $0.connectTimeout = .zero }, { $0.unacknowledgedMax = .zero },
            { $0.heldBytesMax = 0 }, { $0.connectionsMax = 0 },
            { $0.handshakeInterval = .seconds(3_600) },
            { $0.backlog = 0 },
        ] as [@Sendable (inout SocketSettings) -> Void])
    func `a setting outside its bounds is refused`(
        _ change: @Sendable (inout SocketSettings) -> Void
    ) throws {
        var settings = SocketSettings()
        try settings.validate()
        change(&settings)
        #expect(code { try settings.validate() } == .invalidSetting)
    }

    @Test func `a context has bounds too`() {
        #expect(code { _ = try ZeroMQContext(ioThreads: 0) } == .invalidSetting)
        #expect(code { _ = try ZeroMQContext(socketsMax: 0) } == .invalidSetting)
    }
}
