import CZeroMQ
import ConfluxVocabulary

/// The socket of one peer of a router (`DEALER`).
///
/// Connect it to one router only: a dealer deals what it sends to all that it is connected with,
/// in turn.
public final class DealerSocket: ZeroMQSocket, FrameSender {
    /// Opens a dealer.
    ///
    /// - Parameters:
    ///   - context: Where it lives.
    ///   - settings: Limits and times.
    /// - Throws: `invalidSetting`, `tooManyOpen`, `terminated`.
    public init(
        _ context: ZeroMQContext, settings: SocketSettings = SocketSettings()
    ) throws(ZeroMQError) {
        try super.init(context, type: ZMQ_DEALER, settings: settings)
    }

    /// Takes the next message, if one waits.
    ///
    /// - Returns: A message of one frame; nil when nothing waits. Others are thrown away and
    ///   counted in `malformedCount`.
    /// - Throws: `closed` or `terminated`.
    public func receive() throws(ZeroMQError) -> Bytes? { try receiveSingleFrame() }
}
