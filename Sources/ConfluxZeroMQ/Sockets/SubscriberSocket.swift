import CZeroMQ
import ConfluxVocabulary

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

    /// Takes the next message, if one waits.
    ///
    /// - Returns: A message of one frame; nil when nothing waits. Others are thrown away and
    ///   counted in `malformedCount`.
    /// - Throws: `closed` or `terminated`.
    public func receive() throws(ZeroMQError) -> Bytes? { try receiveSingleFrame() }
}
