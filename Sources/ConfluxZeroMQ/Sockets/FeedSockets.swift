import CZeroMQ
import ConfluxVocabulary

/// The socket that sends everything to all its subscribers, and greets each (`XPUB`).
///
/// A subscriber whose queue is full loses messages; the others lose none, and sending never
/// blocks.
///
/// The welcome message goes out when the owner next uses the socket, or waits for it, after the
/// connection stands, and just *before* the subscription is read. A message that is published between the two may pass a new subscriber by. Who
/// needs certainty publishes something once `receiveSubscriptions` has reported the subscription.
public final class XPublisherSocket: ZeroMQSocket, FrameSender {
    /// Opens a publisher.
    ///
    /// - Parameters:
    ///   - context: Where it lives.
    ///   - settings: Limits and times. `messageBytesMax` concerns what subscribers send, which
    ///     is short.
    /// - Throws: `invalidSetting`, `tooManyOpen`, `terminated`.
    public init(
        _ context: ZeroMQContext, settings: SocketSettings = SocketSettings()
    ) throws(ZeroMQError) {
        var settings = settings
        settings.messageBytesMax = min(settings.messageBytesMax, 1_024)
        try super.init(context, type: ZMQ_XPUB, settings: settings)
        // Every subscription is reported, not the first of its prefix alone.
        try set(ZMQ_XPUB_VERBOSE, Int32(1))
    }

    /// Sets what every subscriber receives first from now on.
    ///
    /// - Parameter frame: The whole frame; an empty one is not sent. It must begin with what
    ///   subscribers subscribe to.
    /// - Throws: `closed` or `outOfMemory`.
    public func setWelcome(_ frame: Bytes) throws(ZeroMQError) {
        try frame.withRawBytes { bytes throws(ZeroMQError) in
            try set(ZMQ_XPUB_WELCOME_MSG, bytes)
        }
    }

    /// Takes what subscribers have sent. libzmq keeps it without a bound until it is taken, so
    /// call this whenever the poller says that the socket is readable.
    ///
    /// - Parameter limit: How many messages to take at most.
    /// - Returns: How many subscriptions were among them. Ends of subscriptions are not counted;
    ///   anything else is counted in `malformedCount`.
    /// - Throws: `closed` or `terminated`.
    public func receiveSubscriptions(limit: Int = 1_000) throws(ZeroMQError) -> Int {
        var subscriptions = 0
        for _ in 0..<limit {
            guard try receiveFrame() else { break }
            let first = frame.first
            if hasMoreFrames {
                _ = try skipMessage()
                malformedCount += 1
            } else if first == 1 {
                subscriptions += 1
            } else if first != 0 {
                malformedCount += 1
            }
        }
        return subscriptions
    }
}

/// The socket that receives what a publisher sends (`SUB`).
public final class SubscriberSocket: ZeroMQSocket {
    /// Opens a subscriber that receives nothing until it subscribes.
    ///
    /// - Parameters:
    ///   - context: Where it lives.
    ///   - settings: Limits and times; `queuesForConnectedOnly` has no meaning here.
    /// - Throws: `invalidSetting`, `tooManyOpen`, `terminated`.
    public init(
        _ context: ZeroMQContext, settings: SocketSettings = SocketSettings()
    ) throws(ZeroMQError) {
        var settings = settings
        // Else the subscription would leave only when this thread next uses the socket, and not
        // when the connection stands. There is nothing else that could be queued.
        settings.queuesForConnectedOnly = false
        try super.init(context, type: ZMQ_SUB, settings: settings)
    }

    /// Asks for all messages that begin with some bytes, on every connection, also those to come.
    ///
    /// - Parameter prefix: The bytes; none for everything.
    /// - Throws: `closed` or `outOfMemory`.
    public func subscribe(to prefix: Bytes = []) throws(ZeroMQError) {
        try prefix.withRawBytes { bytes throws(ZeroMQError) in try set(ZMQ_SUBSCRIBE, bytes) }
    }

    /// Takes back one `subscribe`.
    ///
    /// - Parameter prefix: What was given to `subscribe`.
    /// - Throws: `closed`.
    public func unsubscribe(from prefix: Bytes = []) throws(ZeroMQError) {
        try prefix.withRawBytes { bytes throws(ZeroMQError) in try set(ZMQ_UNSUBSCRIBE, bytes) }
    }

    /// Takes the next message, if one waits.
    ///
    /// - Returns: A message of one frame; nil when nothing waits. Others are thrown away and
    ///   counted in `malformedCount`.
    /// - Throws: `closed` or `terminated`.
    public func receive() throws(ZeroMQError) -> Bytes? { try receiveSingleFrame() }
}
