import ConfluxVocabulary

/// What the replicas of each store said of their state at its newest digest point: the one place of
/// rules 18 and 22.
///
///     point in the log ──▶ open ── all live hosts voted, or time is up ──▶ decided
///                           ▲ vote                                          │ a late vote: anew
///                           └───────────────────────────────────────────────┘
///
/// Votes count only for the newest point, and only those of the store's own schema version: what
/// another version makes of the state may differ. A state is the store's where a strict majority of
/// those that voted has it: both of two, all of one. Without a majority nobody is told to change its
/// state, for nobody knows which is right.
struct DigestTable: Sendable {
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
        var awaited: Set<Incarnation>
        /// By who voted. *Invariant*: at most one of each session.
        var votes: [Incarnation: Result] = [:]
        var verdict: Verdict?

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
    }

    /// By store. *Invariant*: each is of the newest point of a present life.
    private(set) var rounds: [StoreName: Round] = [:]
    /// The last point at which all replicas that voted were equal; none where there is none in this
    /// tenure.
    private(set) var lastEqual: [StoreName: SequenceNumber] = [:]
    /// Where replicas differ, until they do not.
    private(set) var divergences: [StoreName: DivergenceStatus] = [:]
    /// The stores whose votes are not decided. *Use*: deadlines.
    private var open: Set<StoreName> = []

    /// The most votes for one point: those of sessions that came and went count, too. *At the bound*
    /// a further one counts for nothing.
    static let votesMax = 10_000

    func round(of store: StoreName) -> Round? { rounds[store] }

    /// Whether replicas still have time to say what they are at the newest point.
    func isOpen(_ store: StoreName) -> Bool { open.contains(store) }

    var count: Int { rounds.count }

    /// A point is in the log. The round before it is over.
    mutating func begin(_ round: Round) {
        rounds[round.place.store] = round
        open.insert(round.place.store)
    }

    /// A replica has voted.
    ///
    /// - Returns: Whether the vote counts.
    mutating func add(_ vote: Vote, of incarnation: Incarnation) -> Bool {
        let store = vote.place.store
        guard let round = rounds[store], round.place == vote.place,
            round.schemaVersion == vote.schemaVersion, round.votes[incarnation] == nil,
            round.votes.count < Self.votesMax
        else { return false }
        rounds[store]?.awaited.remove(incarnation)
        rounds[store]?.votes[incarnation] = Result(
            digest: vote.digest, refusals: vote.refusals, byteCount: vote.byteCount)
        return true
    }

    /// A session is not there any more, or hosts the store no longer.
    mutating func pass(over incarnation: Incarnation, for store: StoreName) {
        rounds[store]?.awaited.remove(incarnation)
    }

    /// The rounds for which the time is over, and in which nobody of those that are there has voted.
    func silent(at now: Duration) -> [Round] {
        open.compactMap { store in
            rounds[store].flatMap { round in
                now >= round.deadline && round.votes.isEmpty && !round.awaited.isEmpty ? round : nil
            }
        }.sorted { $0.place.store < $1.place.store }
    }

    /// The stores whose votes can be decided, ascending.
    func due(at now: Duration) -> [StoreName] {
        open.filter { store in
            rounds[store].map { $0.awaited.isEmpty || now >= $0.deadline } ?? true
        }.sorted()
    }

    /// Decides the votes for a store's newest point, or decides them anew.
    ///
    /// - Returns: The verdict; nil when nobody voted, or it is the former one.
    mutating func decide(_ store: StoreName) -> Verdict? {
        open.remove(store)
        rounds[store]?.awaited = []
        guard let round = rounds[store], let verdict = round.tally, verdict != round.verdict
        else { return nil }
        rounds[store]?.verdict = verdict
        let point = round.place.sequence
        let equal = lastEqual[store] ?? round.place.life
        switch verdict {
        case .majority(_, let losers) where losers.isEmpty:
            lastEqual[store] = point
        case .majority(_, let losers):
            diverge(store, equal, point, losers, isMajority: true)
        case .none(let voters):
            diverge(store, equal, point, voters, isMajority: false)
        }
        return verdict
    }

    private mutating func diverge(
        _ store: StoreName, _ equal: SequenceNumber, _ point: SequenceNumber,
        _ nodes: [Incarnation], isMajority: Bool
    ) {
        // What lasts is reported where it began.
        let former = divergences[store]
        divergences[store] = DivergenceStatus(
            lastEqual: former?.lastEqual ?? equal, firstUnequal: former?.firstUnequal ?? point,
            nodes: nodes, isMajority: isMajority, path: former?.path)
    }

    /// All replicas have one state again.
    ///
    /// - Returns: Whether they had not.
    mutating func converge(_ store: StoreName) -> Bool {
        divergences.removeValue(forKey: store) != nil
    }

    mutating func locate(_ location: DigestReport.Location) {
        divergences[location.place.store]?.path = location.path
    }

    /// The life is over, or has another schema version: nothing that was said of it counts.
    mutating func forget(_ store: StoreName) {
        rounds[store] = nil
        lastEqual[store] = nil
        divergences[store] = nil
        open.remove(store)
    }

    /// When votes are to be decided next.
    var nextDeadline: Duration? {
        open.lazy.compactMap { rounds[$0]?.deadline }.min()
    }
}
