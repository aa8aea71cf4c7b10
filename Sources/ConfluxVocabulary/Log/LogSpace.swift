/// How much of a log's bound is used.
public struct LogSpace: Sendable, Hashable {
    /// What is left, in steps at which somebody does something about it.
    public enum Room: Int, Sendable, Hashable, Comparable {
        /// At most three eighths are used.
        case ample
        /// More than that is used. A sequencer sees to it early that older entries can be discarded. Copying what
        /// they still serve takes room, too: at most as much as the entries themselves.
        case scarce
        /// All but the reserve is used (``LogSpace/reserveBytes(of:)``), so a sequencer admits no actions.
        case nearlyFull

        /// Whether the left one has more room.
        public static func < (left: Room, right: Room) -> Bool { left.rawValue < right.rawValue }
    }

    /// What is left.
    public var room: Room
    /// How many bytes are used, by everything that the bound counts.
    public var usedBytes: UInt64
    /// The bound, in bytes.
    public var limitBytes: UInt64
    /// What else keeps the log from having room, and what to do about it, for people; nil if there is nothing.
    public var advice: String?
    /// How many bytes were free on the log's disk when somebody looked; nil if nobody did, or the log has no disk here.
    public var freeBytes: UInt64?

    /// Makes the space of a log that uses some bytes of its bound.
    ///
    /// - Parameters:
    ///   - usedBytes: How many bytes are used.
    ///   - limitBytes: The bound, in bytes.
    public init(usedBytes: UInt64, of limitBytes: UInt64) {
        self.usedBytes = usedBytes
        self.limitBytes = limitBytes
        room =
            if usedBytes > limitBytes - Self.reserveBytes(of: limitBytes) {
                .nearlyFull
            } else if usedBytes > limitBytes / 8 * 3 {
                .scarce
            } else {
                .ample
            }
    }

    /// Whether what somebody does about it is the same.
    package func isAlike(_ other: LogSpace) -> Bool {
        room == other.room && advice == other.advice && limitBytes == other.limitBytes
    }

    /// How much of a bound is reserved for what makes room again: checkpoints, snapshots, and entries that are kept
    /// aside. It is an eighth; of a small bound it is more, three eighths or 64 MiB.
    public static func reserveBytes(of limitBytes: UInt64) -> UInt64 {
        max(limitBytes / 8, min(limitBytes / 8 * 3, 64 << 20))
    }
}
