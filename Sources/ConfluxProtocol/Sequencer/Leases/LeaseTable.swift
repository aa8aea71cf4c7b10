import ConfluxVocabulary

/// The leases of a log, and who waits for them. Rule 42 is implemented here.
///
/// Claiming and releasing a lease are entries of the log, and so is it that a session has left. So the table is a function
/// of the log, and each sequencer knows who holds what. Claims for one lease are served in the order of their entries.
///
///     claim ──▶ waiting ──its turn──▶ held ──▶ over
///                  └──release, or the session leaves──▲
///
/// The table changes when an entry is admitted. So an action under a lease is taken only if no entry before it, in the log
/// or on its way there, ends the lease.
struct LeaseTable: Sendable, Equatable {
    struct Claim: Sendable, Equatable {
        /// The number of its entry.
        let number: SequenceNumber
        /// The lease.
        let name: StoreName
        /// The session that claims it.
        let session: Incarnation
        /// The name of the session's key; nil if there were no keys.
        let owner: Name?
        /// Whether it locks the store of that name.
        let locks: Bool
    }

    /// The most claims, which the keys share.
    static let countMax = 10_000

    private(set) var claims: [SequenceNumber: Claim] = [:]
    /// The claims for each lease, in their order. The first is held. *Invariant*: none is empty.
    private var lines: [StoreName: [SequenceNumber]] = [:]
    private var bySession: [Incarnation: Set<SequenceNumber>] = [:]
    /// The claims that stand otherwise since an entry that is not in the log yet.
    private var undecided: [SequenceNumber: SequenceNumber] = [:]
    private(set) var counts = Shares<Name>()
    /// The claims that lock, or will.
    private var locks: Set<SequenceNumber> = []

    subscript(number: SequenceNumber) -> Claim? { claims[number] }

    /// Whether there is any lock, held or waiting.
    var hasLocks: Bool { !locks.isEmpty }

    /// The lock that is held on a store which a target concerns.
    ///
    /// - Parameters:
    ///   - target: What the actions are for.
    ///   - session: Who sends them. The session that has the lock passes it.
    ///   - claims: The claims under which they are sent.
    /// - Returns: The lock; nil if there is none, or the actions pass it.
    func lock(
        on target: Target, for session: Incarnation, under claims: [SequenceNumber]
    ) -> Claim? {
        let first: [SequenceNumber] =
            if case .store(let name) = target { lines[name].map { [$0[0]] } ?? [] } else {
                locks.filter(isHeld)
            }
        return first.compactMap { self[$0] }.filter { claim in
            claim.locks && target.concerns(claim.name) && claim.session != session
                && !claims.contains(claim.number)
        }.min { $0.number < $1.number }
    }

    /// Whether an owner may have more claims.
    func hasRoom(for owner: Name?, _ count: Int = 1) -> Bool {
        counts.hasRoom(for: owner, count, of: Self.countMax)
    }

    /// Whether the lease of a claim is held by it.
    func isHeld(_ number: SequenceNumber) -> Bool {
        claims[number].map { lines[$0.name]?.first == number } ?? false
    }

    /// Whether the entry that decided how a claim stands is in the log.
    func isDecided(_ number: SequenceNumber) -> Bool { undecided[number] == nil }

    /// How a claim stands, as others may hear.
    enum Standing { case held, waiting, over }

    /// - Returns: nil if the entry that decides it is not in the log yet.
    func standing(of number: SequenceNumber) -> Standing? {
        guard isDecided(number) else { return nil }
        return claims[number] == nil ? .over : isHeld(number) ? .held : .waiting
    }

    /// Entries are in the log up to a number.
    ///
    /// - Returns: The claims of which they decided how these stand.
    @discardableResult
    mutating func land(through last: SequenceNumber) -> [SequenceNumber] {
        guard !undecided.isEmpty else { return [] }
        let decided = undecided.filter { $0.value <= last }.map(\.key)
        for claim in decided { undecided[claim] = nil }
        return decided
    }

    /// Adds a claim behind the others for its lease.
    mutating func add(_ claim: Claim) {
        undecided[claim.number] = claim.number
        insert(claim)
    }

    /// Adds a claim of a checkpoint. They come in their order.
    ///
    /// - Returns: false if there is one with its number.
    mutating func restore(_ claim: Claim) -> Bool {
        guard claims[claim.number] == nil else { return false }
        insert(claim)
        return true
    }

    private mutating func insert(_ claim: Claim) {
        claims[claim.number] = claim
        lines[claim.name, default: []].append(claim.number)
        bySession[claim.session, default: []].insert(claim.number)
        if claim.locks { locks.insert(claim.number) }
        counts.add(of: claim.owner)
    }

    /// An entry ends a claim.
    mutating func end(_ number: SequenceNumber, at entry: SequenceNumber) {
        guard let claim = claims[number] else { return }
        end([number], of: claim.session, at: entry)
    }

    /// An entry says that a session has left, so its claims end.
    mutating func end(claimsOf session: Incarnation, at entry: SequenceNumber) {
        if let numbers = bySession[session] { end(numbers, of: session, at: entry) }
    }

    private mutating func end(
        _ numbers: Set<SequenceNumber>, of session: Incarnation, at entry: SequenceNumber
    ) {
        var names: Set<StoreName> = []
        for number in numbers {
            guard let claim = claims.removeValue(forKey: number) else { continue }
            undecided[number] = entry
            locks.remove(number)
            names.insert(claim.name)
            counts.remove(of: claim.owner)
        }
        for name in names {
            let former = lines[name]?.first
            lines[name]?.removeAll { numbers.contains($0) }
            guard let next = lines[name]?.first else {
                lines[name] = nil
                continue
            }
            if next != former { undecided[next] = entry }
        }
        bySession[session]?.subtract(numbers)
        if bySession[session]?.isEmpty == true { bySession[session] = nil }
    }

    func checkInvariants() throws(BrokenInvariant) {
        let waiting = lines.values.flatMap(\.self)
        try hold(Set(waiting) == Set(claims.keys), "the lines have other claims than the table")
        try hold(waiting.count == claims.count, "a claim stands twice in a line")
        try hold(lines.values.allSatisfy { !$0.isEmpty }, "a line is empty")
        try hold(
            lines.values.allSatisfy { zip($0, $0.dropFirst()).allSatisfy { $0 < $1 } },
            "a claim stands before an earlier one")
        try hold(
            bySession.values.reduce(0) { $0 + $1.count } == claims.count,
            "the sessions have other claims than the table")
        try hold(
            locks == Set(claims.values.filter(\.locks).map(\.number)),
            "the locks are others than those of the table")
        try hold(counts.total == claims.count, "\(claims.count) claims, not \(counts.total)")
    }
}
