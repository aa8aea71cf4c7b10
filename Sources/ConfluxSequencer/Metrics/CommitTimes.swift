import ConfluxVocabulary

/// When entries were committed, in a bounded number of spans. Used to compute the age of the first entry that
/// a replica lacks.
struct CommitTimes: Sendable {
    /// Entries that were committed at about the same time.
    private struct Span {
        var last: SequenceNumber
        /// When the first of them was committed.
        let began: Duration
    }

    /// The most spans. *At the bound* old spans are merged where that costs little precision.
    static let countMax = 1_024
    /// An age exceeds the true one by at most 1/32 of it plus one span, so older spans are coarser. With this
    /// precision, entries of a hundred years need far fewer spans than `countMax`.
    static let precision = 32
    /// How long entries go to the same span.
    static let spanMin = Duration.milliseconds(100)

    /// *Invariant*: ascending.
    private var spans: [Span] = []

    /// Notes that the log holds entries up to a number now. It may have held them already.
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
        // The newest span is first.
        var merged: [Span] = []
        for span in spans.reversed() {
            // A lower bound for the age of the last span's entries.
            let following = merged.count > 1 ? merged[merged.count - 2].began : now
            if let last = merged.last?.last,
                following - span.began <= (now - following) / Self.precision
            {
                merged[merged.count - 1] = Span(last: last, began: span.began)
            } else {
                merged.append(span)
            }
        }
        // `precision` alone keeps the spans below the bound for any realistic uptime.
        spans = merged.prefix(Self.countMax).reversed()
    }

    /// The age of the first entry after a number; zero if there is none.
    func age(ofFirstBehind sequence: SequenceNumber, at now: Duration) -> Duration {
        let index = spans.partitioningIndex { $0.last > sequence }
        return index < spans.count ? max(.zero, now - spans[index].began) : .zero
    }
}
