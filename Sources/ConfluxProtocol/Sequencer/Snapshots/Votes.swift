import ConfluxVocabulary

/// What the replicas of one life of a store reported of their states at its newest digest point.
/// Rules 18 and 22 are implemented here.
///
///     point in the log ──▶ open ── all live hosts voted, or time is up ──▶ decided
///                           ▲ vote                                          │ a late vote: anew
///                           └───────────────────────────────────────────────┘
///
/// Only votes for the newest point count, and only those of the store's own schema version, since
/// another version may make another state of the same entries. A state is the store's if a strict
/// majority of the voters has it: both of two, or the only one. Without a majority nobody is told
/// to change its state, since nobody knows which one is right. A vote that is repeated after a new
/// welcome counts once.
struct Votes: Sendable {
    /// What is compared: two replicas agree if this is equal.
    struct Result: Sendable, Hashable {
        var digest: Digest
        var refusals: Digest
        var byteCount: UInt64
    }

    /// The result of the votes for one point.
    enum Verdict: Sendable, Equatable {
        /// This state is the store's.
        case majority(Result, losers: [Incarnation])
        /// No state has a majority.
        case none(voters: [Incarnation])
    }

    /// The votes for one point.
    struct Round: Sendable {
        let place: SnapshotPlace
        let schemaVersion: UInt32
        /// The bytes of the entries that concerned the store up to the point. *Use*: to decide
        /// whether a snapshot is due.
        let load: UInt64
        /// When the votes that have arrived decide.
        let deadline: Duration
        /// The hosts that are present and have not voted. *Invariant*: empty once the round is
        /// decided.
        fileprivate(set) var awaited: Set<Incarnation>
        /// The votes by voter. *Invariant*: at most one for each session.
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

        /// The result of the present votes; nil if there are none.
        var tally: Verdict? {
            var counts: [Result: Int] = [:]
            for result in votes.values { counts[result, default: 0] += 1 }
            guard let most = counts.max(by: { $0.value < $1.value }) else { return nil }
            guard most.value * 2 > votes.count else { return .none(voters: votes.keys.sorted()) }
            return .majority(
                most.key,
                losers: votes.filter { $0.value != most.key }.map(\.key).sorted())
        }

        /// The replicas that voted for a state, and so can be asked for it.
        func sources(of digest: Digest) -> [Incarnation] {
            votes.filter { $0.value.digest == digest }.map(\.key).sorted()
        }

        /// Whether the time is up, and none of the hosts that are present has voted.
        func isSilent(at now: Duration) -> Bool {
            now >= deadline && votes.isEmpty && !awaited.isEmpty
        }
    }

    /// *Invariant*: it is for the newest point.
    private(set) var round: Round?
    /// Whether replicas still have time to vote for the newest point.
    private(set) var isOpen = false
    /// The last point at which all voters were equal; nil if there was none in this term.
    private(set) var lastEqual: SequenceNumber?
    /// How the replicas differ; nil while they do not.
    private(set) var divergence: DivergenceStatus?

    /// The most votes for one point, including those of sessions that have left. *At the bound* a
    /// further vote does not count.
    static let votesMax = 10_000

    /// The latest time at which the votes are decided; nil once they are.
    var deadline: Duration? { isOpen ? round?.deadline : nil }

    /// Whether every awaited host has voted or left.
    var isComplete: Bool { isOpen && round?.awaited.isEmpty == true }

    /// A point is in the log. The round before it ends.
    mutating func begin(_ round: Round) {
        self.round = round
        isOpen = true
    }

    /// A replica votes.
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

    /// A host no longer votes: its session has ended, it no longer hosts the store, or its replica
    /// has stopped.
    mutating func pass(over incarnation: Incarnation) {
        round?.awaited.remove(incarnation)
    }

    /// Decides the votes for the newest point, or decides them again.
    ///
    /// - Parameter life: The number of the life. All replicas were equal there, if no later equal
    ///   point is known.
    /// - Returns: The verdict; nil if nobody voted, or if the verdict is the same as before.
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
        // A lasting divergence is reported from where it began.
        divergence = DivergenceStatus(
            lastEqual: divergence?.lastEqual ?? lastEqual ?? life,
            firstUnequal: divergence?.firstUnequal ?? point,
            nodes: nodes, isMajority: isMajority, path: divergence?.path)
    }

    /// All replicas have the same state again.
    ///
    /// - Returns: Whether they differed before.
    mutating func converge() -> Bool {
        defer { divergence = nil }
        return divergence != nil
    }

    mutating func locate(_ path: String) { divergence?.path = path }
}
