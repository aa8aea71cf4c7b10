import ConfluxVocabulary

/// The log's size and time at a bounded number of sequence numbers. They show which entries are too
/// old to keep (rule 20).
struct LogMarks: Sendable, Equatable {
    /// The end of a commit.
    struct Mark: Sendable, Equatable {
        var last: SequenceNumber
        /// The bytes of all commits up to its end, since the log began.
        var byteCount: UInt64
        var timestamp: Timestamp
    }

    /// The most marks. *At the bound* every other mark is dropped.
    static let countMax = 1_024
    /// The minimum bytes of log between two marks.
    private static let spacingMin: UInt64 = 1 << 10

    /// Ascending.
    private(set) var marks: [Mark] = []
    /// The bytes of all commits since the log began.
    private(set) var byteCount: UInt64 = 0

    init() {}

    /// Makes marks from a checkpoint; nil if they do not ascend, or are too many.
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

    /// Counts a commit that is in the log now.
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

    /// The log holds nothing below the floor any more.
    mutating func forget(below floor: SequenceNumber) {
        // The last mark below the floor is kept: it shows how many bytes the log has after it.
        let index = marks.firstIndex { $0.last >= floor } ?? marks.count
        if index > 1 { marks.removeFirst(index - 1) }
    }

    /// About how many bytes of the log follow a number. The result is never too low.
    func byteCount(behind sequence: SequenceNumber) -> UInt64 {
        byteCount - (marks.last { $0.last <= sequence }?.byteCount ?? 0)
    }

    /// The bytes of all commits from the floor on.
    func byteCount(from floor: SequenceNumber) -> UInt64 {
        byteCount(behind: SequenceNumber(max(floor.rawValue, 1) - 1))
    }

    /// The lowest number to keep so that at least the older half of the bytes from a floor on is discarded. It may be
    /// more: one large commit may have most of the bytes, and a log without room gets no others after it.
    func floor(keepingHalfFrom floor: SequenceNumber) -> SequenceNumber {
        let half = byteCount(from: floor) / 2
        let mark = marks.first { $0.last >= floor && byteCount - $0.byteCount <= half }
        return mark?.last.next ?? floor
    }

    /// The lowest number to keep under this retention; 1 if everything is kept.
    func floor(
        keeping retention: Retention, through last: SequenceNumber, at now: Timestamp
    ) -> SequenceNumber {
        let old = marks.last { mark in
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

/// How much of the log is kept beyond what rule 20 asks for. Entries beyond one of the bounds are
/// discarded as soon as no replica can need them. While the log is nearly full, it keeps less: as
/// little as it must to have room again.
public struct Retention: Sendable, Hashable {
    /// The most bytes of commits that are kept. Default: 256 MiB.
    public var bytesMax: UInt64 = 256 << 20
    /// The most entries that are kept; nil for as many as the bytes allow.
    public var entriesMax: UInt64?
    /// The greatest age of entries that are kept; nil for any age that the bytes allow.
    public var ageMax: Duration?

    /// Makes the default bounds.
    public init() {}
}
