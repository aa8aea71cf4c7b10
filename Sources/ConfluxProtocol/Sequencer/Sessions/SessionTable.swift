import ConfluxVocabulary

/// What the sequencer remembers of one origin.
struct Session: Sendable, Equatable {
    /// Whether its node is there.
    enum Presence: UInt8, Sendable, CaseIterable {
        /// Heard of in this tenure, or present when the tenure began and not yet silent for long.
        case live
        /// A `left` entry ended its presence.
        case left
        /// It never was: it dispatches without joining (rule 42).
        case visit
    }

    /// The number of its first `joined` entry, or of its `visited` one.
    let incarnation: Incarnation
    /// The random number of its process, or what its key gives: the other half of its identity
    /// (rule 8).
    let nonce: Nonce
    /// The node's unique name.
    let name: Name?
    /// The name of the key that opened it; nil if there were no keys.
    let owner: Name?
    /// Whether it outlives the bye of its process (rule 11).
    let isKeyed: Bool
    /// Its outcomes (rule 9). They change by the ledger's own functions.
    var ledger = OutcomeLedger()
    /// Whether its node is there.
    var presence: Presence
    /// Whether a `forgotten` entry for it is on its way to the log. *Use*: nothing is said of the
    /// session until it is there.
    var isEnding = false
    /// Whether it left, and a `joined` entry by which its node is present again is on its way to the log.
    var isReturning = false
    /// When it was heard of last, or since when it is away. *Invariant*: measured afresh in each tenure (rule 10).
    var quietSince: Duration
    /// Which process holds it, if it is keyed; nil until one said hello in this tenure.
    var process: Nonce?
    /// Where it is to be reached; nil until it said hello in this tenure.
    var connection: ConnectionID?
    /// The number of the hello that took it up last, in this tenure; 0 before one did.
    var greeting: UInt64 = 0
    /// How far its replicas are.
    var applied = SequenceNumber.zero

    /// A visit (rule 42).
    init(visit incarnation: Incarnation, nonce: Nonce, owner: Name?) {
        self.init(
            incarnation: incarnation, nonce: nonce, name: nil, owner: owner, isKeyed: false,
            presence: .visit, quietSince: .zero)
    }

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

    /// Whether its node is away, and it may be forgotten.
    var isAway: Bool { presence == .left && !isEnding && !isReturning }

    /// Whether this is the hello that took it up last.
    func isTakenUp(by hello: Hello) -> Bool {
        nonce == hello.nonce && process == hello.process && greeting == hello.request
    }

    /// Whether its process said this before the hello that took it up last.
    func isPast(_ hello: Hello) -> Bool {
        process == hello.process && hello.request < greeting
    }
}

/// All sessions, found by incarnation, by nonce and by name, and counted by owner. They change by its
/// functions alone.
struct SessionTable: Sendable, Equatable {
    private var sessions: [Incarnation: Session] = [:]
    private var byNonce: [Nonce: Incarnation] = [:]
    /// The holder of each name: the session that joined last with it. *Invariant*: at most one
    /// live session has a name.
    private var byName: [Name: Incarnation] = [:]

    /// How many of them are ending.
    private var endingCount = 0
    /// How many there are of each key, without those that end and without visits, and with those to come.
    /// *Invariant*: none is 0.
    private var ownerCounts: [Name: Int] = [:]
    /// Those that are away, by how long they are.
    private var away = AwaySessions()
    /// Those that are visits.
    private var visits = VisitQueue()

    var count: Int { sessions.count }
    /// How many of them are visits.
    var visitCount: Int { visits.count }
    /// How many there will be once those that end are gone, without visits.
    var lastingCount: Int { sessions.count - endingCount - visits.count }
    var incarnations: [Incarnation] { sessions.keys.sorted() }
    var all: some Collection<Session> { sessions.values }
    /// How many there are of a key, without those that end and without visits, and with those to come.
    func count(of owner: Name) -> Int { ownerCounts[owner] ?? 0 }

    subscript(incarnation: Incarnation) -> Session? {
        _read { yield sessions[incarnation] }
    }

    func incarnation(of nonce: Nonce) -> Incarnation? { byNonce[nonce] }

    /// Whether the session joined last with its name.
    func isHolder(_ session: Session) -> Bool {
        session.name.map { byName[$0] == session.incarnation } ?? false
    }

    /// Whether a session with this incarnation or nonce is there.
    func contains(_ incarnation: Incarnation, _ nonce: Nonce) -> Bool {
        sessions[incarnation] != nil || byNonce[nonce] != nil
    }

    /// Puts back a session as it was.
    ///
    /// - Returns: false when another one holds its name, too.
    mutating func restore(_ session: Session, isHolder: Bool) -> Bool {
        sessions[session.incarnation] = session
        if session.isAway { away.append(session) }
        if session.presence == .visit { visits.append(session.incarnation) }
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

    /// A session is to begin for which there is room: a further one finds it taken.
    mutating func reserve(for owner: Name?) { count(1, of: owner) }

    /// A session that was to begin is about to be inserted.
    mutating func endReservation(for owner: Name?) { count(-1, of: owner) }

    mutating func insert(_ session: Session) {
        // A nonce finds one session. A sequencer that remembers fewer visits than a log's fold may give
        // somebody the nonce of one that it has forgotten.
        if let former = byNonce[session.nonce], sessions[former]?.presence == .visit {
            visits.remove(former)
            remove(former)
        }
        sessions[session.incarnation] = session
        count(1, session)
        byNonce[session.nonce] = session.incarnation
        if let name = session.name { byName[name] = session.incarnation }
    }

    private mutating func count(_ change: Int, _ session: Session) {
        if session.presence != .visit { count(change, of: session.owner) }
    }

    private mutating func count(_ change: Int, of owner: Name?) {
        guard let owner else { return }
        let count = ownerCounts[owner, default: 0] + change
        ownerCounts[owner] = count == 0 ? nil : count
    }

    /// The node of a session that had left is about to be present again: it is not forgotten meanwhile.
    mutating func markReturning(_ incarnation: Incarnation) {
        guard let session = sessions[incarnation] else { return }
        away.remove(session)
        sessions[incarnation]?.isReturning = true
    }

    /// The node of a session that had left is present again, and holds its name again.
    mutating func revive(_ incarnation: Incarnation, at now: Duration) {
        guard var session = sessions[incarnation], session.presence != .visit else { return }
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

    // MARK: Visits

    /// The last visit that was forgotten: each that began behind it is here.
    var forgottenVisit: Incarnation { visits.forgotten }

    /// A visit begins, and enough older ones are forgotten for it.
    mutating func begin(_ visit: Session, keeping most: Int) {
        insert(visit)
        visits.append(visit.incarnation)
        keepVisits(most)
    }

    /// Forgets the oldest visits above a number.
    mutating func keepVisits(_ most: Int) {
        while visits.count > most { remove(visits.forgetFirst()) }
    }

    /// A checkpoint says that these were forgotten.
    mutating func forgetVisits(through incarnation: Incarnation) {
        visits.forget(through: incarnation)
    }

    /// What is said to the session from now on goes there.
    mutating func reach(_ incarnation: Incarnation, by connection: ConnectionID) {
        sessions[incarnation]?.connection = connection
    }

    // MARK: Presence

    /// The session is reached by this connection from now on, and by no other.
    ///
    /// - Returns: The connection by which it was reached until now, if that is another one.
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

    /// The session's node has said something.
    mutating func hear(_ incarnation: Incarnation, at now: Duration) {
        sessions[incarnation]?.quietSince = now
    }

    /// The session's node is not present any more.
    mutating func leave(_ incarnation: Incarnation, at now: Duration) {
        guard var session = sessions[incarnation], session.presence != .visit else { return }
        session.connection = nil
        session.presence = .left
        session.quietSince = now
        sessions[incarnation] = session
        away.remove(session)
        if session.isAway { away.append(session) }
    }

    /// Silence is measured afresh in each epoch (rule 10).
    mutating func measureSilence(from now: Duration) {
        away = AwaySessions()
        for incarnation in incarnations {
            sessions[incarnation]?.quietSince = now
            if let session = sessions[incarnation], session.isAway { away.append(session) }
        }
    }

    // MARK: Outcomes

    /// Changes what is known of a session's outcomes.
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

    /// How far the node's replicas are.
    mutating func advance(_ incarnation: Incarnation, to applied: SequenceNumber) {
        guard let known = sessions[incarnation]?.applied else { return }
        sessions[incarnation]?.applied = max(known, applied)
    }

    // MARK: Forgetting

    /// The session that has been away longest: the first to be forgotten (rule 10). nil when no node is
    /// away.
    var longestAway: Incarnation? { away.first }

    /// The same of one key.
    func longestAway(of owner: Name) -> Incarnation? { away.first(of: owner) }
}

/// Sessions whose nodes are away, by how long they are, together and by key.
///
/// Two tables that differ in it alone are the same: while a log is read nobody is forgotten for another,
/// and ``SessionTable/measureSilence(from:)`` orders it when the tenure begins.
private struct AwaySessions: Sendable, Equatable {
    private var all = ArrivalQueue<Incarnation>()
    /// *Invariant*: none is empty.
    private var byOwner: [Name: ArrivalQueue<Incarnation>] = [:]

    var first: Incarnation? { all.first }

    func first(of owner: Name) -> Incarnation? { byOwner[owner]?.first }

    mutating func append(_ session: Session) {
        all.append(session.incarnation)
        guard let owner = session.owner else { return }
        byOwner[owner, default: ArrivalQueue()].append(session.incarnation)
    }

    mutating func remove(_ session: Session) {
        all.remove(session.incarnation)
        guard let owner = session.owner else { return }
        byOwner[owner]?.remove(session.incarnation)
        if byOwner[owner]?.first == nil { byOwner[owner] = nil }
    }

    static func == (_: AwaySessions, _: AwaySessions) -> Bool { true }
}
