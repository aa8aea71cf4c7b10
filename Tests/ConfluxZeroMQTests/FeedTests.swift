import CZeroMQ
import ConfluxVocabulary
import ConfluxZeroMQ
import Testing

@Suite struct FeedTests {
    private let publisher: PublisherSocket
    private let endpoint: Endpoint

    init() throws {
        publisher = try PublisherSocket(settings: .test)
        endpoint = try publisher.bind(Endpoint("tcp://127.0.0.1:0"))
    }

    /// A subscriber whose subscription was reported.
    private func subscriber() throws -> ClientSocket {
        let subscriber = try ClientSocket(.subscriber, settings: .test)
        try subscriber.connect(endpoint)
        try wait(for: publisher, subscriber) {
            while try subscriber.receive() != nil {}
            return try publisher.receiveSubscriptions(limit: 1) > 0 ? () : nil
        }
        return subscriber
    }

    private func hear(_ subscriber: ClientSocket) throws -> Bytes {
        try wait(for: subscriber, publisher) {
            _ = try publisher.receiveSubscriptions()
            return try subscriber.message()
        }
    }

    @Test func `everything published after a reported subscription arrives`() throws {
        let first = try subscriber()
        // The same subscription by a second subscriber is reported, too.
        let second = try subscriber()
        try publisher.send([5, 6])
        #expect(try hear(first) == [5, 6])
        #expect(try hear(second) == [5, 6])
    }

    @Test func `a stalled subscriber loses messages and blocks nobody`() throws {
        let stalled = try subscriber()
        let frame = [UInt8](repeating: 0, count: 1 << 20)
        for _ in 0..<100 { try publisher.send(frame[...]) }
        let healthy = try subscriber()
        try publisher.send([4])
        #expect(try hear(healthy) == [4])
        withExtendedLifetime(stalled) {}
    }

    @Test func `messages that are not subscriptions are counted and dropped`() throws {
        let stranger = try RawSocket(ZMQ_XSUB, connectingTo: endpoint)
        try stranger.send(["hello"])
        try stranger.send(["\u{1}"])
        try wait(for: publisher) {
            try publisher.receiveSubscriptions(limit: 1) > 0 ? () : nil
        }
        #expect(publisher.malformedCount == 1)
    }
}
