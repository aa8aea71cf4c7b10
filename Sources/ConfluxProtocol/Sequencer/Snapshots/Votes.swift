import ConfluxVocabulary

/// What the replicas of one life of a store said of their state at its newest digest point: the one
/// place of rules 18 and 22.
///
///     point in the log ──▶ open ── all live hosts voted, or time is up ──▶ decided
///                           ▲ vote                                          │ a late vote: anew
///                           └───────────────────────────────────────────────┘
///
/// Votes count only for the newest point, and only those of the store's own schema version: what
/// another version makes of the state may differ. A state is the store's where a strict majority of
/// those that voted has it: both of two, all of one. Without a majority nobody is told to change its
/// state, for nobody knows which is right. A vote that comes again, behind a new welcome, is one.
struct Votes: Sendable {
    /// What is equal where two replicas agree.
    struct Result: Sendable, Hashable {
        var digest: Digest
        var refusals: Digest
        var byteCount: UInt64
    }

    /// What came of the votes for one point.
    enum Verdict: Sendable, Equatable {
        /// Some state is the store's.
        case majority(Result, losers: [Incarnation])
        /// No state is.
        case none(voters: [Incarnation])
    }

    /// The votes for one point.
    struct Round: Sendable {
        let place: SnapshotPlace
        let schemaVersion: UInt32
        /// What concerned the store up to the point, in bytes. *Use*: whether a snapshot is due.
        let load: UInt64
        /// When those that voted decide.
        let deadline: Duration
        /// The hosts that were there and have not voted. *Invariant*: empty once it is decided.
        fileprivate(set) var awaited: Set<Incarnation>
        /// By who voted. *Invariant*: at most one of each session.
        fileprivate(set) var votes: [Incarnation: Result] = [:]
        fileprivate(set) var verdict: Verdict?

        init(
            place: SnapshotPlace, schemaVersion: UInt32, load: UInt64, deadline: Duration,
            awaited: Set<Incarnation>
        ) {
            self.place = place
            self.schemaVersion = schemaVersion
            self.load = load
            self.deadline = deadline
            self.awaited = awaited
        }

        /// What the votes come to; nil when there are none.
        var tally: Verdict? {
            var counts: [Result: Int] = [:]
            for result in votes.values { counts[result, default: 0] += 1 }
            guard let most = counts.max(by: { $0.value < $1.value }) else { return nil }
            guard most.value * 2 > votes.count else { return .none(voters: votes.keys.sorted()) }
            return .majority(
                most.key,
                losers: votes.filter { $0.value != most.key }.map(\.key).sorted())
        }

        /// Who has a state, by which it can be asked for it.
        func sources(of digest: Digest) -> [Incarnation] {
            votes.filter { $0.value.digest == digest }.map(\.key).sorted()
        }

        /// Whether the time is over, and nobody of those that are there has voted.
        func isSilent(at now: Duration) -> Bool {
            now >= deadline && votes.isEmpty && !awaited.isEmpty
        }
    }

    /// *Invariant*: of the newest point.
    private(set) var round: Round?
    /// Whether replicas still have time to say what they are at the newest point.
    private(set) var isOpen = false
    /// The last point at which all replicas that voted were equal; none where there is none in this
    /// tenure.
    private(set) var lastEqual: SequenceNumber?
    /// Where replicas differ, until they do not.
    private(set) var divergence: DivergenceStatus?

    /// The most votes for one point: those of sessions that came and went count, too. *At the bound*
    /// a further one counts for nothing.
    static let votesMax = 10_000

    /// When the votes are decided at the latest; nil once they are.
    var deadline: Duration? { isOpen ? round?.deadline : nil }

    /// Whether nobody else is awaited.
    var isComplete: Bool { isOpen && round?.awaited.isEmpty == true }

    /// A point is in the log. The round before it is over.
    mutating func begin(_ round: Round) {
        self.round = round
        isOpen = true
    }

    /// A replica has voted.
    ///
    /// - Returns: Whether the vote counts.
    mutating func add(_ vote: Vote, of incarnation: Incarnation) -> Bool {
        guard let round, round.place == vote.place,
            round.schemaVersion == vote.schemaVersion, round.votes[incarnation] == nil,
            round.votes.count < Self.votesMax
        else { return false }
        self.round?.awaited.remove(incarnation)
        self.round?.votes[incarnation] = Result(
            digest: vote.digest, refusals: vote.refusals, byteCount: vote.byteCount)
        return true
    }

    /// A session is not there any more, or hosts the store no longer.
    mutating func pass(over incarnation: Incarnation) {
        round?.awaited.remove(incarnation)
    }

    /// Decides the votes for the newest point, or decides them anew.
    ///
    /// - Parameter life: The number from which on replicas are equal, where nobody has looked yet.
    /// - Returns: The verdict; nil when nobody voted, or it is the former one.
    mutating func decide(since life: SequenceNumber) -> Verdict? {
        isOpen = false
        round?.awaited = []
        guard let round, let verdict = round.tally, verdict != round.verdict else { return nil }
        self.round?.verdict = verdict
        let point = round.place.sequence
        switch verdict {
        case .majority(_, let losers) where losers.isEmpty: lastEqual = point
        case .majority(_, let losers): diverge(at: point, since: life, losers, isMajority: true)
        case .none(let voters): diverge(at: point, since: life, voters, isMajority: false)
        }
        return verdict
    }

    private mutating func diverge(
        at point: SequenceNumber, since life: SequenceNumber, _ nodes: [Incarnation],
        isMajority: Bool
    ) {
        // What lasts is reported where it began.
        divergence = DivergenceStatus(
            lastEqual: divergence?.lastEqual ?? lastEqual ?? life,
            firstUnequal: divergence?.firstUnequal ?? point,
            nodes: nodes, isMajority: isMajority, path: divergence?.path)
    }

    /// All replicas have one state again.
    ///
    /// - Returns: Whether they had not.
    mutating func converge() -> Bool {
        defer { divergence = nil }
        return divergence != nil
    }

    mutating func locate(_ path: String) { divergence?.path = path }
}
