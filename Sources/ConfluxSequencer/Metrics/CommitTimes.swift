import ConfluxVocabulary

/// When entries were committed, at a bounded number of places: what says how old the first entry is that a
/// replica lacks.
struct CommitTimes: Sendable {
    /// Entries that were committed at about one time.
    private struct Span {
        var last: SequenceNumber
        /// When the first of them was.
        let began: Duration
    }

    /// How many spans there are. *At the bound* old ones become one where little is lost by that.
    static let countMax = 1_024
    /// An age is never more than this part of itself too large, and a span: the older, the coarser. So
    /// those of a hundred years need far fewer spans than there may be.
    static let precision = 32
    /// For how long entries go to one span.
    static let spanMin = Duration.milliseconds(100)

    /// Ascending.
    private var spans: [Span] = []

    /// Entries up to a number are in the log now. They may be there already.
    mutating func add(through last: SequenceNumber, at now: Duration) {
        guard last > spans.last?.last ?? .zero else { return }
        if let began = spans.last?.began, now - began < Self.spanMin {
            spans[spans.count - 1].last = last
            return
        }
        spans.append(Span(last: last, began: now))
        if spans.count > Self.countMax { merge(at: now) }
    }

    private mutating func merge(at now: Duration) {
        // The newest is first.
        var merged: [Span] = []
        for span in spans.reversed() {
            // Entries of the last one are as old as this, at least.
            let following = merged.count > 1 ? merged[merged.count - 2].began : now
            if let last = merged.last?.last,
                following - span.began <= (now - following) / Self.precision
            {
                merged[merged.count - 1] = Span(last: last, began: span.began)
            } else {
                merged.append(span)
            }
        }
        // Only after a time that nothing lives to see there are too many of them still.
        spans = merged.prefix(Self.countMax).reversed()
    }

    /// How old the first entry behind a number is; zero where there is none.
    func age(ofFirstBehind sequence: SequenceNumber, at now: Duration) -> Duration {
        var low = 0
        var high = spans.count
        while low < high {
            let middle = (low + high) / 2
            if spans[middle].last <= sequence { low = middle + 1 } else { high = middle }
        }
        return low < spans.count ? max(.zero, now - spans[low].began) : .zero
    }
}
