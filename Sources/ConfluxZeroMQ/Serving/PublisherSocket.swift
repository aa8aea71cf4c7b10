import CZeroMQ
import ConfluxVocabulary

/// The socket that sends everything to all its subscribers. To its peers it is an `XPUB`.
///
/// A subscriber whose queue is full loses messages; the others lose none, and sending never
/// blocks. Whoever subscribes, to whatever, gets everything that is published from then on: what a
/// subscription asks for is not kept.
public final class PublisherSocket: ServingSocket {
    private var subscribers: [(id: RoutingID, queue: SubscriberQueue)] = []
    /// Where each stands in `subscribers`.
    private var places: [RoutingID: Int] = [:]
    private var newSubscriptions = 0
    private let message = UnsafeMutablePointer<zmq_msg_t>.allocate(capacity: 1)

    /// The most bytes that a subscriber may say at once: a subscription to a short prefix.
    private static let messageBytesMax = 256

    /// Opens a publisher.
    ///
    /// - Parameters:
    ///   - context: Where it lives.
    ///   - settings: Limits and times. `messageBytesMax` concerns what subscribers send, which is
    ///     short, and is at most 256 here. What waits for a subscriber is bounded in bytes, 16 MiB,
    ///     and not by `sendQueueMessages`.
    /// - Throws: `invalidSetting`, `tooManyOpen`, `terminated`.
    public init(
        _ context: ZeroMQContext, settings: SocketSettings = SocketSettings()
    ) throws(ZeroMQError) {
        var settings = settings
        settings.sendQueueMessages = SubscriberQueue.messagesMax
        settings.messageBytesMax = min(settings.messageBytesMax, Self.messageBytesMax)
        try super.init(
            context, as: .publisher, settings: settings, silenceMax: settings.handshakeInterval)
    }

    deinit { message.deallocate() }

    /// Takes what peers have sent.
    ///
    /// - Parameter limit: How many pieces to take at most; the poller tells of what is left.
    /// - Returns: How many peers have subscribed. What is published from now on is sent to them.
    ///   What is no subscription is counted in `malformedCount`.
    /// - Throws: `closed` or `terminated`.
    public func receiveSubscriptions(limit: Int = 256) throws(ZeroMQError) -> Int {
        newSubscriptions = 0
        for _ in 0..<limit {
            guard try receivePiece() else { break }
        }
        return newSubscriptions
    }

    /// Queues one frame for every subscriber that has room for it. They share one copy, unless
    /// connections are encrypted.
    ///
    /// - Parameter frame: The whole frame.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(_ frame: Bytes) throws(ZeroMQError) {
        guard !isEncrypted else {
            try send { _ in frame }
            return
        }
        let shared = SharedFrame(frame)
        for (id, queue) in subscribers where queue.hasRoom { try send(shared, queue, to: id) }
    }

    /// Queues for every subscriber that has room a frame of its own, on an encrypted socket.
    ///
    /// - Parameter frame: The frame for whoever has the key; nil for none.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(_ frame: (CurvePublicKey?) -> Bytes?) throws(ZeroMQError) {
        for (id, queue) in subscribers where queue.hasRoom {
            guard let session = curve(of: id), let frame = frame(key(of: id)) else { continue }
            try send(SharedFrame(frame, sealedBy: session), queue, to: id)
        }
    }

    private func send(
        _ frame: SharedFrame, _ queue: SubscriberQueue, to id: RoutingID
    ) throws(ZeroMQError) {
        guard frame.fill(message, for: queue) else { throw .system(ENOMEM, "Sending") }
        try send(message, to: id)
    }

    override func take(_ event: ZMTPDecoder.Event, from id: RoutingID) {
        switch event {
        case .subscription(let isOn): subscribe(id, isOn)
        case .message(let body) where body.first == 1: subscribe(id, true)
        case .message(let body) where body.first == 0: subscribe(id, false)
        case .message, .malformed: malformedCount += 1
        case .answer, .identified, .ping: break
        }
    }

    override func ended(_ id: RoutingID) { subscribe(id, false) }

    override func mayBeSilent(_ id: RoutingID) -> Bool { places[id] != nil }

    private func subscribe(_ id: RoutingID, _ isOn: Bool) {
        if isOn, places[id] == nil {
            places[id] = subscribers.count
            subscribers.append((id, SubscriberQueue()))
            newSubscriptions += 1
        } else if !isOn, let place = places.removeValue(forKey: id) {
            let last = subscribers.removeLast()
            guard last.id != id else { return }
            subscribers[place] = last
            places[last.id] = place
        }
    }
}
