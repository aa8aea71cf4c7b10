import ConfluxVocabulary

/// What the sequencer remembers of one origin.
struct Session: Sendable, Equatable {
    /// Whether its node is present.
    enum Presence: UInt8, Sendable, CaseIterable {
        /// The node was heard in this term; or it was present when the term began, and has not
        /// been silent for long.
        case live
        /// A `left` entry ended the node's presence.
        case left
    }

    /// The number of its first `joined` entry.
    let incarnation: Incarnation
    /// The random number of its process, or the value derived from its session key. It is the other
    /// half of the session's identity (rule 8).
    let nonce: Nonce
    /// The node's unique name.
    let name: Name?
    /// The name of the key that opened it; nil if there were no keys.
    let owner: Name?
    /// Whether it outlives its process's bye (rule 11).
    let isKeyed: Bool
    /// Its outcomes (rule 9). Only the ledger's own functions change them.
    var ledger = OutcomeLedger()
    /// Whether its node is present.
    var presence: Presence
    /// Whether a `forgotten` entry for it is on its way to the log. *Use*: until the entry is
    /// there, nothing is said about the session.
    var isEnding = false
    /// Whether it left, and a `joined` entry that makes its node present again is on its way to the
    /// log.
    var isReturning = false
    /// When its node was last heard, or since when it has been away. *Invariant*: measured afresh
    /// in each term (rule 10).
    var quietSince: Duration
    /// The process that holds it, if it is keyed; nil until a process has said hello in this
    /// term.
    var process: Nonce?
    /// The connection that reaches its node; nil until the node has said hello in this term.
    var connection: ConnectionID? {
        didSet { isCutOff = false }
    }
    /// Whether that connection has ended, and the node has not come back by another one.
    fileprivate(set) var isCutOff = false
    /// The number of the last hello that took it up in this term; 0 if none did.
    var greeting: UInt64 = 0
    fileprivate var lockWaits = LockWaits()
    /// The number up to which its replicas have applied.
    var applied = SequenceNumber.zero

    init(
        incarnation: Incarnation, nonce: Nonce, name: Name?, owner: Name?, isKeyed: Bool,
        presence: Presence = .live, quietSince: Duration
    ) {
        self.incarnation = incarnation
        self.nonce = nonce
        self.name = name
        self.owner = owner
        self.isKeyed = isKeyed
        self.presence = presence
        self.quietSince = quietSince
    }

    /// Whether its node is away, so that it may be forgotten.
    var isAway: Bool { presence == .left && !isEnding && !isReturning }

    /// Whether this is the last hello that took it up.
    func isTakenUp(by hello: Hello) -> Bool {
        nonce == hello.nonce && process == hello.process && greeting == hello.request
    }

    /// Whether its process said this before the last hello that took it up.
    func isPast(_ hello: Hello) -> Bool {
        process == hello.process && hello.request < greeting
    }
}

/// All sessions. They are found by incarnation, by nonce and by name, and counted by owner. They
/// change only through its functions.
struct SessionTable: Sendable, Equatable {
    private var sessions: [Incarnation: Session] = [:]
    private var byNonce: [Nonce: Incarnation] = [:]
    /// The holder of each name: the session that joined with it last. *Invariant*: at most one live
    /// session has a name.
    private var byName: [Name: Incarnation] = [:]

    /// How many sessions are ending.
    private var endingCount = 0
    /// How many sessions each key has. Ending ones do not count; reserved ones do.
    /// *Invariant*: no count is 0.
    private var ownerCounts: [Name: Int] = [:]
    /// The sessions that are away, ordered by how long.
    private var away = AwaySessions()

    var count: Int { sessions.count }
    /// How many sessions will be left once those that are ending are gone.
    var lastingCount: Int { sessions.count - endingCount }
    var incarnations: [Incarnation] { sessions.keys.sorted() }
    var all: some Collection<Session> { sessions.values }
    /// How many sessions a key has. Ending ones do not count; reserved ones do.
    func count(of owner: Name) -> Int { ownerCounts[owner] ?? 0 }

    subscript(incarnation: Incarnation) -> Session? {
        _read { yield sessions[incarnation] }
    }

    func incarnation(of nonce: Nonce) -> Incarnation? { byNonce[nonce] }

    /// Whether the session is the last that joined with its name.
    func isHolder(_ session: Session) -> Bool {
        session.name.map { byName[$0] == session.incarnation } ?? false
    }

    /// Whether there is a session with this incarnation or nonce.
    func contains(_ incarnation: Incarnation, _ nonce: Nonce) -> Bool {
        sessions[incarnation] != nil || byNonce[nonce] != nil
    }

    /// Restores a session as it was.
    ///
    /// - Returns: false if another session holds its name, too.
    mutating func restore(_ session: Session, isHolder: Bool) -> Bool {
        sessions[session.incarnation] = session
        if session.isAway { away.append(session) }
        count(1, session)
        byNonce[session.nonce] = session.incarnation
        guard let name = session.name, isHolder else { return true }
        return byName.updateValue(session.incarnation, forKey: name) == nil
    }

    /// The live session that holds the name.
    func holder(of name: Name) -> Incarnation? {
        guard let incarnation = byName[name], sessions[incarnation]?.presence == .live else {
            return nil
        }
        return incarnation
    }

    /// Reserves the place of a session that is about to begin, so that no other session takes it.
    mutating func reserve(for owner: Name?) { count(1, of: owner) }

    /// Ends the reservation of a session that is about to be inserted.
    mutating func endReservation(for owner: Name?) { count(-1, of: owner) }

    mutating func insert(_ session: Session) {
        sessions[session.incarnation] = session
        count(1, session)
        byNonce[session.nonce] = session.incarnation
        if let name = session.name { byName[name] = session.incarnation }
    }

    private mutating func count(_ change: Int, _ session: Session) {
        count(change, of: session.owner)
    }

    private mutating func count(_ change: Int, of owner: Name?) {
        guard let owner else { return }
        let count = ownerCounts[owner, default: 0] + change
        ownerCounts[owner] = count == 0 ? nil : count
    }

    /// The node of a session that had left is about to be present again. The session is not
    /// forgotten meanwhile.
    mutating func markReturning(_ incarnation: Incarnation) {
        guard let session = sessions[incarnation] else { return }
        away.remove(session)
        sessions[incarnation]?.isReturning = true
    }

    /// The node of a session that had left is present again, and holds its name again.
    mutating func revive(_ incarnation: Incarnation, at now: Duration) {
        guard var session = sessions[incarnation] else { return }
        away.remove(session)
        session.isReturning = false
        session.presence = .live
        session.quietSince = now
        if let name = session.name { byName[name] = incarnation }
        sessions[incarnation] = session
    }

    mutating func end(_ incarnation: Incarnation) {
        guard let session = sessions[incarnation], !session.isEnding else { return }
        away.remove(session)
        count(-1, session)
        sessions[incarnation]?.isEnding = true
        endingCount += 1
    }

    mutating func remove(_ incarnation: Incarnation) {
        guard let session = sessions.removeValue(forKey: incarnation) else { return }
        if session.isEnding { endingCount -= 1 } else { count(-1, session) }
        away.remove(session)
        if byNonce[session.nonce] == incarnation { byNonce[session.nonce] = nil }
        if let name = session.name, byName[name] == incarnation { byName[name] = nil }
    }

    // MARK: Presence

    /// The session is reached by this connection from now on, and by no other.
    ///
    /// - Returns: The session's former connection, if it is another one.
    mutating func takeUp(
        _ incarnation: Incarnation, by hello: Hello, on connection: ConnectionID,
        at now: Duration
    ) -> ConnectionID? {
        let former = sessions[incarnation]?.connection
        sessions[incarnation]?.connection = connection
        sessions[incarnation]?.process = hello.process
        sessions[incarnation]?.greeting = hello.request
        sessions[incarnation]?.quietSince = now
        return former == connection ? nil : former
    }

    /// The session's connection has ended. Its node may come back.
    mutating func cutOff(_ incarnation: Incarnation) {
        sessions[incarnation]?.isCutOff = true
    }

    /// The session's node was heard.
    mutating func hear(_ incarnation: Incarnation, at now: Duration) {
        // In place, since a change through an optional moves the whole session out and in again.
        guard let index = sessions.index(forKey: incarnation) else { return }
        sessions.values[index].quietSince = now
    }

    /// The session's node is no longer present.
    mutating func leave(_ incarnation: Incarnation, at now: Duration) {
        guard var session = sessions[incarnation] else { return }
        session.connection = nil
        session.presence = .left
        session.quietSince = now
        sessions[incarnation] = session
        away.remove(session)
        if session.isAway { away.append(session) }
    }

    /// Starts to measure silence afresh, as in each epoch (rule 10).
    mutating func measureSilence(from now: Duration) {
        away = AwaySessions()
        for incarnation in incarnations {
            sessions[incarnation]?.quietSince = now
            if let session = sessions[incarnation], session.isAway { away.append(session) }
        }
    }

    // MARK: Invariants

    /// - Parameter reserved: How many places each key has reserved.
    /// - Throws: What does not hold.
    func checkInvariants(reserved: [Name: Int]) throws(BrokenInvariant) {
        var (ending, awayCount, owned) = (0, 0, reserved)
        for (incarnation, session) in sessions {
            try session.ledger.checkInvariants()
            try hold(session.incarnation == incarnation, "\(incarnation) is \(session.incarnation)")
            try hold(
                byNonce[session.nonce] == incarnation, "\(incarnation) is not found by its nonce")
            if session.isEnding { ending += 1 }
            if session.isAway { awayCount += 1 }
            if let owner = session.owner, !session.isEnding { owned[owner, default: 0] += 1 }
            try hold(
                session.presence == .live || session.connection == nil,
                "\(incarnation) has left and is connected")
            guard session.presence == .live, !session.isEnding, let name = session.name else {
                continue
            }
            try hold(
                byName[name] == incarnation,
                "\(incarnation) is live as \(name), and is not found by that name")
        }
        try hold(byNonce.count == sessions.count, "a nonce finds a session that is gone")
        try hold(
            byName.allSatisfy { sessions[$0.value]?.name == $0.key },
            "a name finds another's session")
        try hold(ending == endingCount, "\(endingCount) sessions end, and \(ending) are marked")
        try hold(
            awayCount == away.count, "\(away.count) sessions are away, and \(awayCount) have left")
        try hold(
            owned == ownerCounts,
            "the keys have or reserve \(owned) sessions, and \(ownerCounts) are counted")
    }

    // MARK: Outcomes

    /// Changes the outcomes of a session.
    ///
    /// - Returns: What the change returns; nil if there is no such session.
    @discardableResult
    mutating func change<Result>(
        _ incarnation: Incarnation, _ change: (inout OutcomeLedger) -> Result
    ) -> Result? {
        guard let index = sessions.index(forKey: incarnation) else { return nil }
        return change(&sessions.values[index].ledger)
    }

    // MARK: Progress

    /// Records how far the node's replicas have applied.
    mutating func advance(_ incarnation: Incarnation, to applied: SequenceNumber) {
        guard let known = sessions[incarnation]?.applied else { return }
        sessions[incarnation]?.applied = max(known, applied)
    }

    // MARK: Locks

    /// Changes how long batches of a session have waited for locked stores.
    ///
    /// - Returns: What the change returns; nil if there is no such session.
    @discardableResult
    mutating func changeLockWaits<Result>(
        of incarnation: Incarnation, _ change: (inout LockWaits) -> Result
    ) -> Result? {
        guard let index = sessions.index(forKey: incarnation) else { return nil }
        return change(&sessions.values[index].lockWaits)
    }

    // MARK: Forgetting

    /// The session that is the first to be forgotten (rule 10): the one that has been away longest, of those without a
    /// session key if there are any. nil if no node is away.
    var longestAway: Incarnation? { away.first }

    /// The same for one key.
    func longestAway(of owner: Name) -> Incarnation? { away.first(of: owner) }
}

/// Sessions whose nodes are away, ordered by how long, for all keys together and for each key. Those that a process can
/// continue by a session key come last.
///
/// Two tables that differ only in this are equal. While a log is read, no session is forgotten to
/// make room for another, and ``SessionTable/measureSilence(from:)`` sets the order when the term
/// begins.
private struct AwaySessions: Sendable, Equatable {
    private struct Queues {
        var unkeyed = ArrivalQueue<Incarnation>()
        var keyed = ArrivalQueue<Incarnation>()

        var count: Int { unkeyed.count + keyed.count }
        var first: Incarnation? { unkeyed.first ?? keyed.first }

        mutating func append(_ session: Session) {
            if session.isKeyed {
                keyed.append(session.incarnation)
            } else {
                unkeyed.append(session.incarnation)
            }
        }

        mutating func remove(_ session: Session) {
            unkeyed.remove(session.incarnation)
            keyed.remove(session.incarnation)
        }
    }

    private var all = Queues()
    /// *Invariant*: none is empty.
    private var byOwner: [Name: Queues] = [:]

    var count: Int { all.count }
    var first: Incarnation? { all.first }

    func first(of owner: Name) -> Incarnation? { byOwner[owner]?.first }

    mutating func append(_ session: Session) {
        all.append(session)
        guard let owner = session.owner else { return }
        byOwner[owner, default: Queues()].append(session)
    }

    mutating func remove(_ session: Session) {
        all.remove(session)
        guard let owner = session.owner else { return }
        byOwner[owner]?.remove(session)
        if byOwner[owner]?.first == nil { byOwner[owner] = nil }
    }

    static func == (_: AwaySessions, _: AwaySessions) -> Bool { true }
}
