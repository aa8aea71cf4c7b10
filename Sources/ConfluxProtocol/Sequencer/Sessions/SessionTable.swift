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
    /// The name of the key that opened it; nil where there were no keys.
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
    var isAway: Bool { presence == .left && !isEnding }

    /// Whether this is the hello that took it up last.
    func isTakenUp(by hello: Hello) -> Bool {
        nonce == hello.nonce && process == hello.process && greeting == hello.request
    }

    /// Whether its process said this before the hello that took it up last.
    func isPast(_ hello: Hello) -> Bool {
        process == hello.process && hello.request < greeting
    }
}

/// All sessions, found by incarnation, by nonce and by name. They change by its functions alone.
struct SessionTable: Sendable, Equatable {
    private var sessions: [Incarnation: Session] = [:]
    private var byNonce: [Nonce: Incarnation] = [:]
    /// The holder of each name: the session that joined last with it. *Invariant*: at most one
    /// live session has a name.
    private var byName: [Name: Incarnation] = [:]

    /// How many of them are ending.
    private var endingCount = 0
    /// How many are away, and not ending.
    private var awayCount = 0
    /// Those that are visits.
    private var visits = VisitQueue()
    /// Those that were away when it was made, by how long they are.
    private var awayQueue = AwayQueue()

    var count: Int { sessions.count }
    /// How many of them are visits.
    var visitCount: Int { visits.count }
    /// How many there will be once those that end are gone, without visits.
    var lastingCount: Int { sessions.count - endingCount - visits.count }
    var incarnations: [Incarnation] { sessions.keys.sorted() }
    var all: some Collection<Session> { sessions.values }

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
        if session.isAway { awayCount += 1 }
        if session.presence == .visit { visits.append(session.incarnation) }
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

    mutating func insert(_ session: Session) {
        // A nonce finds one session. A sequencer that remembers fewer visits than a log's fold may give
        // somebody the nonce of one that it has forgotten.
        if let former = byNonce[session.nonce], sessions[former]?.presence == .visit {
            visits.remove(former)
            remove(former)
        }
        sessions[session.incarnation] = session
        byNonce[session.nonce] = session.incarnation
        if let name = session.name { byName[name] = session.incarnation }
    }

    /// The node of a session that had left is present again, and holds its name again.
    mutating func revive(_ incarnation: Incarnation, at now: Duration) {
        guard var session = sessions[incarnation], session.presence != .visit else { return }
        if session.isAway { awayCount -= 1 }
        session.presence = .live
        session.quietSince = now
        if let name = session.name { byName[name] = incarnation }
        sessions[incarnation] = session
    }

    mutating func end(_ incarnation: Incarnation) {
        guard let session = sessions[incarnation], !session.isEnding else { return }
        if session.isAway { awayCount -= 1 }
        sessions[incarnation]?.isEnding = true
        endingCount += 1
    }

    mutating func remove(_ incarnation: Incarnation) {
        guard let session = sessions.removeValue(forKey: incarnation) else { return }
        if session.isEnding { endingCount -= 1 }
        if session.isAway { awayCount -= 1 }
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
        if session.presence == .live, !session.isEnding { awayCount += 1 }
        session.connection = nil
        session.presence = .left
        session.quietSince = now
        sessions[incarnation] = session
    }

    /// Silence is measured afresh in each epoch (rule 10).
    mutating func measureSilence(from now: Duration) {
        for incarnation in sessions.keys { sessions[incarnation]?.quietSince = now }
    }

    // MARK: Outcomes

    /// Changes what is known of a session's outcomes.
    ///
    /// - Returns: What the change returns; nil where there is no such session.
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

    /// The session that has been away longest: the first to be forgotten (rule 10). All sessions are
    /// looked at once for as many answers as there were sessions away, since whoever wants a place
    /// may ask without end.
    ///
    /// - Parameter isReturning: Whether the node of a nonce is just coming back.
    /// - Returns: The session; nil when no node is away.
    mutating func longestAway(except isReturning: (Nonce) -> Bool) -> Incarnation? {
        guard awayCount > 0 else { return nil }
        if let next = nextAway(except: isReturning) { return next }
        awayQueue.waiting = sessions.values.filter(\.isAway)
            .map { AwayQueue.Place(quietSince: $0.quietSince, incarnation: $0.incarnation) }
            .sorted { ($0.quietSince, $0.incarnation) > ($1.quietSince, $1.incarnation) }
        return nextAway(except: isReturning)
    }

    private mutating func nextAway(except isReturning: (Nonce) -> Bool) -> Incarnation? {
        while let place = awayQueue.waiting.popLast() {
            guard let session = sessions[place.incarnation], session.isAway,
                session.quietSince == place.quietSince, !isReturning(session.nonce)
            else { continue }
            return place.incarnation
        }
        return nil
    }
}

/// What a table remembers so that it need not look at all sessions again. Two tables that differ in
/// it alone are the same.
private struct AwayQueue: Sendable, Equatable {
    struct Place: Sendable {
        let quietSince: Duration
        let incarnation: Incarnation
    }

    /// The one that has been away longest is the last.
    var waiting: [Place] = []

    static func == (_: AwayQueue, _: AwayQueue) -> Bool { true }
}
