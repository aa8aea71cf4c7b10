import ConfluxVocabulary

/// What the sequencer remembers of one origin.
struct Session: Sendable, Equatable {
    /// Whether its node is there.
    enum Presence: Sendable, Equatable {
        /// Heard of in this tenure, or present when the tenure began and not yet silent for long.
        case live
        /// A `left` entry ended its presence.
        case left
    }

    /// The number of its first `joined` entry.
    let incarnation: Incarnation
    /// The random number of its process, or what its key gives: the other half of its identity
    /// (rule 8).
    let nonce: Nonce
    /// The node's unique name.
    let name: Name?
    /// Whether it outlives the bye of its process (rule 11).
    let isKeyed: Bool
    /// Its outcomes (rule 9).
    var ledger = OutcomeLedger()
    /// Whether its node is there.
    var presence = Presence.live
    /// Whether a `forgotten` entry for it is on its way to the log. *Use*: nothing is said of the
    /// session until it is there.
    var isEnding = false
    /// Since when it is silent, or away. *Invariant*: measured afresh in each tenure (rule 10).
    var quietSince: Duration
    /// Which process holds it, if it is keyed; nil until one said hello in this tenure.
    var process: Nonce?
    /// Where it is to be reached; nil until it said hello in this tenure.
    var connection: ConnectionID?
    /// The end of the history that its node was told this log lost, in this tenure. *Use*: one note.
    var lostThrough: SequenceNumber?
    /// How far its replicas are.
    var applied = SequenceNumber.zero
    /// The stores that it hosts, as its last hello and what followed said.
    var hosted: [StoreName: HostedStore] = [:]
    /// The states that it bridges.
    var bridged: Set<Name> = []
    /// Its replicas that go no further, and at which entry, as its last progress said.
    var stopped: [StoreName: SequenceNumber] = [:]
}

/// All sessions, found by incarnation, by nonce and by name.
struct SessionTable: Sendable, Equatable {
    private var sessions: [Incarnation: Session] = [:]
    private var byNonce: [Nonce: Incarnation] = [:]
    /// The holder of each name: the session that joined last with it. *Invariant*: at most one
    /// live session has a name.
    private var byName: [Name: Incarnation] = [:]

    /// How many of them are ending.
    private var endingCount = 0

    var count: Int { sessions.count }
    /// How many there will be once those that end are gone.
    var lastingCount: Int { sessions.count - endingCount }
    var incarnations: [Incarnation] { sessions.keys.sorted() }
    var all: some Collection<Session> { sessions.values }

    subscript(incarnation: Incarnation) -> Session? {
        _read { yield sessions[incarnation] }
        _modify { yield &sessions[incarnation] }
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
        sessions[session.incarnation] = session
        byNonce[session.nonce] = session.incarnation
        if let name = session.name { byName[name] = session.incarnation }
    }

    /// The node of a session that had left is present again, and holds its name again.
    mutating func revive(_ incarnation: Incarnation, at now: Duration) {
        guard var session = sessions[incarnation] else { return }
        session.presence = .live
        session.quietSince = now
        if let name = session.name { byName[name] = incarnation }
        sessions[incarnation] = session
    }

    mutating func end(_ incarnation: Incarnation) {
        guard sessions[incarnation]?.isEnding == false else { return }
        sessions[incarnation]?.isEnding = true
        endingCount += 1
    }

    mutating func remove(_ incarnation: Incarnation) {
        guard let session = sessions.removeValue(forKey: incarnation) else { return }
        if session.isEnding { endingCount -= 1 }
        if byNonce[session.nonce] == incarnation { byNonce[session.nonce] = nil }
        if let name = session.name, byName[name] == incarnation { byName[name] = nil }
    }

    /// The session that has been away longest: the first to be forgotten (rule 10).
    ///
    /// - Parameter isReturning: Whether the node of a nonce is just coming back.
    /// - Returns: The session; nil when no node is away.
    func longestAway(except isReturning: (Nonce) -> Bool) -> Incarnation? {
        sessions.values
            .filter { $0.presence == .left && !$0.isEnding && !isReturning($0.nonce) }
            .min { ($0.quietSince, $0.incarnation) < ($1.quietSince, $1.incarnation) }?
            .incarnation
    }
}
