import ConfluxVocabulary

/// The socket that sends every message to all its subscribers. To its peers it is an `XPUB`.
///
/// A subscriber whose queue is full loses messages; the others lose none, and sending never blocks.
/// A subscriber gets everything that is published from then on, whatever it subscribes to: the
/// prefix of a subscription is ignored.
public final class PublisherSocket: ServingSocket {
    private var subscribers: [(id: RoutingID, queue: OutboundQueue)] = []
    /// The index of each in `subscribers`.
    private var places: [RoutingID: Int] = [:]
    private var newSubscriptions = 0

    /// The most bytes that may be queued for one subscriber. *At the bound* the subscriber loses
    /// what is published, and has to fetch it.
    static let queueBytesMax = 16 << 20
    /// The most bytes that may be queued for all subscribers. *At the bound* the subscribers whose key has most
    /// queued lose what is published.
    static let queuesBytesMax = 256 << 20
    /// The most bytes of a message that a subscriber may send: a subscription to a short prefix.
    private static let messageBytesMax = 256

    /// Opens a publisher.
    ///
    /// - Parameter settings: Limits and times. `messageBytesMax` limits what subscribers send, and is at most 256
    ///   here. Bytes limit what may be queued, not `sendQueueMessages`: 16 MiB for one subscriber and 256 MiB for all
    ///   of them.
    /// - Throws: `invalidSetting`, `tooManyOpen`.
    public init(
        settings: SocketSettings = SocketSettings()
    ) throws(ZeroMQError) {
        var settings = settings
        settings.sendQueueMessages = OutboundQueue.messagesMax(bytesMax: Self.queueBytesMax)
        settings.messageBytesMax = min(settings.messageBytesMax, Self.messageBytesMax)
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
    /// - Returns: How many peers have subscribed. They get everything that is published from now
    ///   on. Other messages are counted in `malformedCount`.
    /// - Throws: `closed`.
    public func receiveSubscriptions(limit: Int = 256) throws(ZeroMQError) -> Int {
        newSubscriptions = 0
        let until = Moment.now.monotonic + .milliseconds(1)
        for _ in 0..<limit {
            guard try receivePiece(), Moment.now.monotonic < until else { break }
        }
        return newSubscriptions
    }

    /// Sends one frame to every subscriber that has room in its queue. The queues share one copy, unless connections
    /// are encrypted.
    ///
    /// - Parameter frame: The whole frame.
    /// - Throws: `outOfMemory`, `closed`.
    public func send(_ frame: Bytes) throws(ZeroMQError) {
        guard !isEncrypted else {
            try send { _ in frame }
            return
        }
        try frame.withRawBytes { bytes throws(ZeroMQError) in
            var frame = OutgoingFrame(bytes, sealedBy: nil, in: budget)
            for (id, queue) in subscribers where queue.hasRoom {
                _ = try send(&frame, queue, to: id)
            }
        }
    }

    /// Sends each subscriber that has room in its queue a frame of its own. For an encrypted
    /// socket.
    ///
    /// - Parameter frame: The frame for the subscriber with this key; nil to send nothing.
    /// - Throws: `outOfMemory`, `closed`.
    public func send(_ frame: (CurvePublicKey?) -> Bytes?) throws(ZeroMQError) {
        for (id, queue) in subscribers where queue.hasRoom {
            guard let session = curve(of: id), let frame = frame(key(of: id)) else { continue }
            var sealed = frame.withUnsafeBytes {
                OutgoingFrame($0, sealedBy: session, in: budget)
            }
            _ = try send(&sealed, queue, to: id)
        }
    }

    override func take(_ event: ZMTPDecoder.Event, from id: RoutingID) throws(ZeroMQError) {
        switch event {
        case .subscription(let isOn): try subscribe(id, isOn)
        case .message(let body) where body.first == 1: try subscribe(id, true)
        case .message(let body) where body.first == 0: try subscribe(id, false)
        case .message, .malformed: malformedCount += 1
        case .answer, .identified, .ping: break
        }
    }

    override func ended(_ id: RoutingID) { remove(id) }

    private func subscribe(_ id: RoutingID, _ isOn: Bool) throws(ZeroMQError) {
        guard isOn else {
            if remove(id) { reopen(id) }
            return
        }
        guard places[id] == nil, try establish(id), let queue = queue(of: id) else { return }
        places[id] = subscribers.count
        subscribers.append((id, queue))
        newSubscriptions += 1
    }

    @discardableResult
    private func remove(_ id: RoutingID) -> Bool {
        guard let place = places.removeValue(forKey: id) else { return false }
        let last = subscribers.removeLast()
        if last.id != id {
            subscribers[place] = last
            places[last.id] = place
        }
        return true
    }
}
