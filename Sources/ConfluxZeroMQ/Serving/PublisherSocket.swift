import ConfluxVocabulary

/// The socket that sends every message to its subscribers. To its peers it is an `XPUB`.
///
/// A subscriber gets what is published from then on and begins with one of its prefixes. A subscriber whose queue is
/// full loses messages; the others lose none, and sending never blocks.
public final class PublisherSocket: ServingSocket {
    private struct Subscriber {
        let id: RoutingID
        let queue: OutboundQueue
        var subscriptions = Subscriptions()

        /// Whether it gets a message.
        func takes(_ message: Bytes) -> Bool { queue.hasRoom && subscriptions.match(message) }
    }

    /// The peers that are subscribed to something.
    private var subscribers: [Subscriber] = []
    /// The index of each in `subscribers`.
    private var places: [RoutingID: Int] = [:]
    private var newSubscriptions = 0

    /// The most bytes that may be queued for one subscriber. *At the bound* the subscriber loses
    /// what is published, and has to fetch it.
    static let queueBytesMax = 16 << 20
    /// The most bytes that may be queued for all subscribers. *At the bound* the subscribers whose key has most
    /// queued lose what is published.
    static let queuesBytesMax = 256 << 20
    /// The most bytes of a subscription. A subscriber that sends more is cut off.
    static let subscriptionBytesMax = 64 << 10

    /// Opens a publisher.
    ///
    /// - Parameter settings: Limits and times. `messageBytesMax` limits what subscribers send, and is at most 64 KiB
    ///   here. Bytes limit what may be queued, not `sendQueueMessages`: 16 MiB for one subscriber and 256 MiB for all
    ///   of them.
    /// - Throws: `invalidSetting`, `tooManyOpen`.
    public init(
        settings: SocketSettings = SocketSettings()
    ) throws(ZeroMQError) {
        var settings = settings
        settings.sendQueueMessages = OutboundQueue.messagesMax(bytesMax: Self.queueBytesMax)
        settings.messageBytesMax = min(settings.messageBytesMax, Self.subscriptionBytesMax)
        // A subscriber sends nothing after its subscription, so silence has no limit.
        try super.init(
            as: .publisher, settings: settings, silenceMax: nil,
            outboundBytesMax: OutboundQueue.Limits(
                connection: Self.queueBytesMax, all: Self.queuesBytesMax))
    }

    /// Takes what peers have sent.
    ///
    /// - Parameter limit: How many pieces to take at most. It takes them for at most a millisecond, and the poller
    ///   reports what is left.
    /// - Returns: How many subscriptions have begun that bring their peers more than before. What is published from now
    ///   on is sent to them. Messages that are no subscriptions are counted in `malformedCount`.
    /// - Throws: `closed`.
    public func receiveSubscriptions(limit: Int = 256) throws(ZeroMQError) -> Int {
        newSubscriptions = 0
        let until = Moment.now.monotonic + .milliseconds(1)
        for _ in 0..<limit {
            guard try receivePiece(), Moment.now.monotonic < until else { break }
        }
        return newSubscriptions
    }

    /// Sends one frame to every subscriber that asked for it and has room in its queue. The queues share one copy,
    /// unless connections are encrypted.
    ///
    /// - Parameter frame: The whole frame.
    /// - Throws: `outOfMemory`, `closed`.
    public func send(_ frame: Bytes) throws(ZeroMQError) {
        guard !isEncrypted else {
            try send { _ in frame }
            return
        }
        try frame.withRawBytes { bytes throws(ZeroMQError) in
            var outgoing = OutgoingFrame(bytes, sealedBy: nil, in: budget)
            for subscriber in subscribers where subscriber.takes(frame) {
                _ = try send(&outgoing, subscriber.queue, to: subscriber.id)
            }
        }
    }

    /// Sends each subscriber that has room in its queue a frame of its own, if it asked for that frame. For an
    /// encrypted socket.
    ///
    /// - Parameter frame: The frame for the subscriber with this key; nil to send nothing.
    /// - Throws: `outOfMemory`, `closed`.
    public func send(_ frame: (CurvePublicKey?) -> Bytes?) throws(ZeroMQError) {
        for subscriber in subscribers where subscriber.queue.hasRoom {
            let id = subscriber.id
            guard let session = curve(of: id), let frame = frame(key(of: id)),
                subscriber.takes(frame)
            else { continue }
            var sealed = frame.withUnsafeBytes {
                OutgoingFrame($0, sealedBy: session, in: budget)
            }
            _ = try send(&sealed, subscriber.queue, to: id)
        }
    }

    override func take(_ event: ZMTPDecoder.Event, from id: RoutingID) throws(ZeroMQError) {
        switch event {
        case .subscription(true, let prefix): try subscribe(id, to: prefix)
        case .subscription(false, let prefix): cancel(id, prefix)
        case .message(let body) where body.first == 1: try subscribe(id, to: body.dropFirst())
        case .message(let body) where body.first == 0: cancel(id, body.dropFirst())
        case .message, .malformed: malformedCount += 1
        case .answer, .identified, .ping: break
        }
    }

    override func ended(_ id: RoutingID) { remove(id) }

    private func subscribe(_ id: RoutingID, to prefix: Bytes) throws(ZeroMQError) {
        if places[id] == nil {
            guard try establish(id), let queue = queue(of: id) else { return }
            places[id] = subscribers.count
            subscribers.append(Subscriber(id: id, queue: queue))
        }
        guard let place = places[id] else { return }
        if subscribers[place].subscriptions.add(prefix) { newSubscriptions += 1 }
    }

    private func cancel(_ id: RoutingID, _ prefix: Bytes) {
        guard let place = places[id] else { return }
        subscribers[place].subscriptions.remove(prefix)
        guard subscribers[place].subscriptions.isEmpty else { return }
        remove(id)
        reopen(id)
    }

    private func remove(_ id: RoutingID) {
        guard let place = places.removeValue(forKey: id) else { return }
        let last = subscribers.removeLast()
        guard last.id != id else { return }
        subscribers[place] = last
        places[last.id] = place
    }
}
