import CZeroMQ
import ConfluxVocabulary
import ConfluxZeroMQ
import Testing

@Suite struct FeedTests {
    private let context: ZeroMQContext
    private let publisher: PublisherSocket
    private let endpoint: Endpoint

    init() throws {
        context = try ZeroMQContext()
        publisher = try PublisherSocket(settings: .test)
        endpoint = try publisher.bind(Endpoint("tcp://127.0.0.1:0"))
    }

    private func subscribe(_ prefix: Bytes = []) throws -> SubscriberSocket {
        let subscriber = try SubscriberSocket(context, settings: .test)
        try subscriber.subscribe(to: prefix)
        try subscriber.connect(endpoint)
        return subscriber
    }

    private func awaitSubscription() throws {
        _ = try wait(for: publisher) {
            try publisher.receiveSubscriptions(limit: 1) > 0 ? true : nil
        }
    }

    @Test func `after a subscription was reported everything arrives`() throws {
        let first = try subscribe()
        try awaitSubscription()
        let second = try subscribe()
        // The same subscription of a second one is reported too.
        try awaitSubscription()
        try publisher.send([5, 6])
        #expect(try wait(for: first) { try first.receive() } == [5, 6])
        #expect(try wait(for: second) { try second.receive() } == [5, 6])
    }

    @Test func `a subscriber gets what begins with its prefix`() throws {
        let subscriber = try subscribe([7])
        try awaitSubscription()
        for first in [6, 7, 8] as [UInt8] { try publisher.send([first, 1]) }
        #expect(try wait(for: subscriber) { try subscriber.receive() } == [7, 1])
        #expect(try subscriber.receive() == nil)
    }

    @Test func `a stalled subscriber loses messages and blocks nobody`() throws {
        let stalled = try subscribe()
        try awaitSubscription()
        let frame = [UInt8](repeating: 0, count: 1 << 20)
        for _ in 0..<100 { try publisher.send(frame[...]) }
        let healthy = try subscribe()
        try awaitSubscription()
        try publisher.send([4])
        #expect(try wait(for: healthy) { try healthy.receive() } == [4])
        withExtendedLifetime(stalled) {}
    }

    @Test func `what is no subscription is counted and thrown away`() throws {
        let stranger = try RawSocket(ZMQ_XSUB, connectingTo: endpoint)
        try stranger.send(["hello"])
        try stranger.send(["\u{1}"])
        try awaitSubscription()
        #expect(publisher.malformedCount == 1)
    }
}
