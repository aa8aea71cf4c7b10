import CSockets
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The system's `close`, for types whose own `close` method hides it.
func closeDescriptor(_ descriptor: Int32) { close(descriptor) }

/// One connection of a client socket.
///
/// Confined to the thread that owns the socket. Its owner must end it, exactly once.
final class ClientConnection {
    let descriptor: Int32
    var decoder: ZMTPDecoder
    var outbound = OutboundFrames()
    private let queue: OutboundQueue
    private let budget: OutboundQueue.Budget

    init(
        _ descriptor: Int32, _ decoder: ZMTPDecoder, _ queue: OutboundQueue,
        _ budget: OutboundQueue.Budget
    ) {
        self.descriptor = descriptor
        self.decoder = decoder
        self.queue = queue
        self.budget = budget
    }

    /// Sends a message of one frame, unless too much is queued. It does not report a broken connection: reading from
    /// the connection does.
    ///
    /// - Returns: Whether it was sent or queued.
    func send(_ message: UnsafeRawBufferPointer, isCommand: Bool = false) -> Bool {
        guard queue.hasRoom else { return false }
        var frame = OutgoingFrame(
            message, isCommand: isCommand, sealedBy: decoder.curve, in: budget)
        return outbound.send(&frame, counting: queue, to: descriptor) != .broken
    }

    /// Reads what the peer has sent, once.
    ///
    /// - Returns: How many bytes; 0 at the end; -1 on failure, with `errno` set.
    func receive(_ memory: UnsafeMutableRawBufferPointer) -> Int {
        conflux_receive(descriptor, memory.baseAddress, memory.count)
    }

    /// Sends bytes of the handshake.
    func say(_ bytes: [UInt8]) {
        var frame = OutgoingFrame(handshake: bytes, in: budget)
        _ = outbound.send(&frame, counting: queue, to: descriptor)
    }

    /// Answers a ping.
    func pong(_ context: Bytes) {
        _ = ZMTP.pong(context).withUnsafeBytes { send($0, isCommand: true) }
    }

    /// Writes what is queued, for at most this long.
    func linger(_ most: Duration) {
        let until = Moment.now.monotonic + most
        while !outbound.isClear, outbound.write(to: descriptor, atMost: .max), !outbound.isClear,
            case let left = until - Moment.now.monotonic, left > .zero
        { _ = conflux_await_writable(descriptor, left.wholeMilliseconds) }
    }

    /// Ends the connection. What is queued is lost.
    func end(_ piece: UnsafeMutableRawBufferPointer) {
        conflux_end(
            descriptor, piece.baseAddress, piece.count, StreamServer.drainedBytesMax)
    }
}
