import ConfluxVocabulary

/// How the log's size and time run along its numbers, at a bounded number of places: what is needed
/// to say what has become too old (rule 20).
struct LogMarks: Sendable, Equatable {
    /// The end of a commit.
    struct Mark: Sendable, Equatable {
        var last: SequenceNumber
        /// The bytes of all commits up to it, since the log began.
        var byteCount: UInt64
        var timestamp: Timestamp
    }

    /// How many marks there are. *At the bound* every other one goes.
    static let countMax = 1_024
    /// The least bytes of log between two marks.
    private static let spacingMin: UInt64 = 1 << 10

    /// Ascending.
    private(set) var marks: [Mark] = []
    /// The bytes of all commits since the log began.
    private(set) var byteCount: UInt64 = 0

    init() {}

    /// The marks as a checkpoint has them; nil if they do not ascend.
    init?(_ marks: [Mark], byteCount: UInt64) {
        for (former, next) in zip(marks, marks.dropFirst()) {
            guard former.last < next.last, former.byteCount <= next.byteCount else { return nil }
        }
        guard marks.count <= Self.countMax, marks.last?.byteCount ?? 0 <= byteCount else {
            return nil
        }
        self.marks = marks
        self.byteCount = byteCount
    }

    /// A commit is in the log.
    mutating func add(through last: SequenceNumber, byteCount bytes: Int, at timestamp: Timestamp) {
        byteCount += UInt64(bytes)
        let kept = byteCount - (marks.first?.byteCount ?? 0)
        let spacing = max(Self.spacingMin, kept / UInt64(Self.countMax / 2))
        guard byteCount - (marks.last?.byteCount ?? 0) >= spacing else { return }
        marks.append(Mark(last: last, byteCount: byteCount, timestamp: timestamp))
        if marks.count > Self.countMax {
            marks = marks.enumerated().compactMap { $0.offset % 2 == 0 ? $0.element : nil }
        }
    }

    /// Nothing below the floor is in the log any more.
    mutating func forget(below floor: SequenceNumber) {
        // The one in front of the floor says how many bytes the log has behind it.
        let index = marks.firstIndex { $0.last >= floor } ?? marks.count
        if index > 1 { marks.removeFirst(index - 1) }
    }

    /// About how many bytes of the log stand behind a number: no fewer than there are.
    func byteCount(behind sequence: SequenceNumber) -> UInt64 {
        byteCount - (marks.last { $0.last <= sequence }?.byteCount ?? 0)
    }

    /// The lowest number that is to be kept, by what is kept at most; 1 where all is.
    func floor(
        keeping retention: Retention, through last: SequenceNumber, at now: Timestamp
    ) -> SequenceNumber {
        let limit = last.rawValue - min(last.rawValue, retention.entriesMin)
        let old = marks.last { mark in
            guard mark.last.rawValue <= limit else { return false }
            if byteCount - mark.byteCount >= retention.bytesMax { return true }
            if let most = retention.entriesMax, last.rawValue - mark.last.rawValue >= most {
                return true
            }
            guard let age = retention.ageMax else { return false }
            let nanoseconds = now.rawValue.subtractingReportingOverflow(mark.timestamp.rawValue)
            return nanoseconds.overflow || Duration.nanoseconds(nanoseconds.partialValue) >= age
        }
        return old?.last.next ?? SequenceNumber(1)
    }
}

/// How much of the log is kept, beyond what rule 20 asks for. What is above one of the bounds is
/// given up as soon as no replica can need it.
public struct Retention: Sendable, Hashable {
    /// The bytes of commits that are kept at most. Default: 256 MiB.
    public var bytesMax: UInt64 = 256 << 20
    /// The entries that are kept at most; nil for as many as the bytes allow.
    public var entriesMax: UInt64?
    /// How old the entries are that are kept at most; nil for as old as the bytes allow.
    public var ageMax: Duration?
    /// The newest entries that are kept whatever the other bounds say: who is not further behind
    /// than that needs no snapshot. Default: 10,000.
    public var entriesMin: UInt64 = 10_000

    /// Makes the default bounds.
    public init() {}
}
