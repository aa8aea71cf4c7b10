import ConfluxProtocol

/// Limits how often a sequencer reports events that any peer can cause. In each span it reports a limited
/// number of notes of each kind, and then how many more there were.
struct NoteLimit {
    /// The kinds of notes that are counted separately.
    enum Kind: String {
        case unreadable, challenged, historyLost, sourcePassedOver, joined, left

        /// nil for notes that peers alone can't cause.
        init?(_ note: SequencerNote) {
            switch note {
            case .unreadable: self = .unreadable
            case .challenged: self = .challenged
            case .historyLost: self = .historyLost
            case .sourcePassedOver: self = .sourcePassedOver
            case .joined: self = .joined
            case .left: self = .left
            default: return nil
            }
        }

        /// The most notes of this kind in a span. Many nodes may join and leave at once; for faults, a few
        /// notes are enough.
        var toldMax: Int {
            switch self {
            case .unreadable, .challenged, .historyLost, .sourcePassedOver: 20
            case .joined, .left: 1_000
            }
        }
    }

    /// Notes that were not reported.
    struct Omission: Equatable {
        let kind: Kind
        let count: Int
    }

    private struct Span {
        let began: Duration
        var told = 0
        var omitted = 0
    }

    static let span = Duration.seconds(10)

    private var spans: [Kind: Span] = [:]

    /// - Returns: Whether to report a note.
    mutating func admits(_ note: SequencerNote, at now: Duration) -> Bool {
        guard let kind = Kind(note) else { return true }
        var span = spans[kind] ?? Span(began: now)
        defer { spans[kind] = span }
        guard span.told < kind.toldMax else {
            span.omitted += 1
            return false
        }
        span.told += 1
        return true
    }

    /// Ends the spans that are over.
    ///
    /// - Returns: What was omitted in them.
    mutating func endSpans(at now: Duration) -> [Omission] {
        guard !spans.isEmpty else { return [] }
        var omissions: [Omission] = []
        for (kind, span) in spans where now - span.began >= Self.span {
            spans[kind] = nil
            if span.omitted > 0 { omissions.append(Omission(kind: kind, count: span.omitted)) }
        }
        return omissions
    }
}
