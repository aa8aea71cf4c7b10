#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What one connection sends, in order: what it does not take at once waits here. How much may wait is the
/// caller's matter.
struct OutboundFrames {
    /// What became of a frame.
    enum Outcome {
        /// The system has all of it.
        case written
        /// It waits, or a part of it: ``write(to:atMost:)`` continues when the connection takes more.
        case waits
        /// The connection is broken. What reads it is told so.
        case broken
    }

    /// What waits to be written, the next one first, behind `head`.
    private var waiting: [Delivery?] = []
    private var head = 0
    /// How many bytes of the next one are written.
    private var written = 0

    /// Whether nothing waits.
    var isClear: Bool { head == waiting.count }
    /// How many frames wait.
    var count: Int { waiting.count - head }

    /// Writes a frame behind what waits, or as much of it as the connection takes.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - queue: Where it counts while it waits.
    ///   - descriptor: The connection.
    /// - Returns: What became of it.
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

    /// Writes what waits, as far as the connection takes it, or some of it: others have their turn then.
    ///
    /// - Parameters:
    ///   - descriptor: The connection.
    ///   - bytesMax: After how many bytes it ends.
    /// - Returns: Whether the connection is whole.
    mutating func write(to descriptor: Int32, atMost bytesMax: Int) -> Bool {
        var bytes = 0
        while bytes < bytesMax, !isClear, let frame = waiting[head]?.frame {
            let count = frame.write(to: descriptor, from: written)
            guard count >= 0 else { return errno == EAGAIN || errno == EWOULDBLOCK }
            written += count
            bytes += count
            guard written == frame.byteCount else { return true }
            written = 0
            letGoFirst()
        }
        return true
    }

    /// The first one is written: it is held no longer.
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
