#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The frames that one connection sends, in order. What the connection does not take at once is queued here. The
/// caller limits how much may be queued.
struct OutboundFrames {
    /// The outcome of sending a frame.
    enum Outcome {
        /// The system has all of it.
        case written
        /// It, or a part of it, is queued: ``write(to:atMost:)`` continues when the connection takes more.
        case waits
        /// The connection is broken. Reading from it reports that.
        case broken
    }

    /// The queued frames: those from index `head` on.
    private var waiting: [Delivery?] = []
    private var head = 0
    /// How many bytes of the next frame are written.
    private var written = 0
    /// How many bytes of queued frames were written so far.
    private(set) var drainedBytes = 0

    /// Whether nothing is queued.
    var isClear: Bool { head == waiting.count }
    /// How many frames are queued.
    var count: Int { waiting.count - head }

    /// Sends a frame after those that are queued. If none is, it writes as much of the frame as the
    /// connection takes, and queues the rest.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - queue: The queue in which the frame counts while it waits.
    ///   - descriptor: The connection.
    /// - Returns: The outcome.
    mutating func send(
        _ frame: inout OutgoingFrame, counting queue: OutboundQueue?, to descriptor: Int32
    ) -> Outcome {
        if isClear {
            let count = frame.write(to: descriptor)
            if count == frame.byteCount { return .written }
            guard count >= 0 || errno == EAGAIN || errno == EWOULDBLOCK else { return .broken }
            written = max(0, count)
        }
        waiting.append(Delivery(of: frame.copied(), in: queue))
        return .waits
    }

    /// Writes what is queued, as far as the connection takes it. After some bytes it stops, so that others have their
    /// turn.
    ///
    /// - Parameters:
    ///   - descriptor: The connection.
    ///   - bytesMax: After how many bytes it stops.
    /// - Returns: False if the connection is broken.
    mutating func write(to descriptor: Int32, atMost bytesMax: Int) -> Bool {
        var bytes = 0
        while bytes < bytesMax, !isClear, let frame = waiting[head]?.frame {
            let count = frame.write(to: descriptor, from: written)
            guard count >= 0 else { return errno == EAGAIN || errno == EWOULDBLOCK }
            written += count
            bytes += count
            drainedBytes &+= count
            guard written == frame.byteCount else { return true }
            written = 0
            letGoFirst()
        }
        return true
    }

    /// Releases the first frame, which is written.
    private mutating func letGoFirst() {
        waiting[head] = nil
        head += 1
        if head == waiting.count {
            waiting.removeAll(keepingCapacity: waiting.capacity <= 64)
            head = 0
        } else if head > 64, head * 2 > waiting.count {
            waiting.removeFirst(head)
            head = 0
        }
    }
}
