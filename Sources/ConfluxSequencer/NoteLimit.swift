import ConfluxProtocol

/// Bounds how often a sequencer tells of what any peer can cause: of each kind so many notes in a
/// span, and then how many more there were.
struct NoteLimit {
    /// What is counted together.
    enum Kind: String {
        case unreadable, challenged, historyLost, joined, left

        /// nil for what peers alone can't bring about.
        init?(_ note: SequencerNote) {
            switch note {
            case .unreadable: self = .unreadable
            case .challenged: self = .challenged
            case .historyLost: self = .historyLost
            case .joined: self = .joined
            case .left: self = .left
            default: return nil
            }
        }

        /// How many are told in a span. Nodes join and leave in masses; what is wrong is seen by a
        /// few.
        var toldMax: Int {
            switch self {
            case .unreadable, .challenged, .historyLost: 20
            case .joined, .left: 1_000
            }
        }
    }

    /// Notes that were not told.
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

    /// - Returns: Whether a note is to be told.
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
