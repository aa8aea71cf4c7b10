import ConfluxVocabulary

/// The connections that said hello in this tenure. What is not in it has no session (rule 8).
struct ConnectionTable: Sendable {
    /// What a connection is for.
    enum Peer: Sendable, Equatable {
        /// A session's present connection.
        case member(Incarnation)
        /// Reads only.
        case observer

        /// The session that its welcome named.
        var session: Incarnation {
            switch self {
            case .member(let incarnation): incarnation
            case .observer: .none
            }
        }
    }

    private struct Entry: Sendable {
        var peer: Peer
        var heardAt: Duration
    }

    private var entries: [ConnectionID: Entry] = [:]
    /// How many observers there are. *Use*: their bound.
    private(set) var observerCount = 0

    subscript(connection: ConnectionID) -> Peer? { entries[connection]?.peer }

    var all: some Collection<ConnectionID> { entries.keys }

    func heardAt(_ connection: ConnectionID) -> Duration? { entries[connection]?.heardAt }

    mutating func heard(_ connection: ConnectionID, at now: Duration) {
        entries[connection]?.heardAt = now
    }

    mutating func insert(_ connection: ConnectionID, as peer: Peer, at now: Duration) {
        remove(connection)
        if peer == .observer { observerCount += 1 }
        entries[connection] = Entry(peer: peer, heardAt: now)
    }

    mutating func remove(_ connection: ConnectionID) {
        if entries.removeValue(forKey: connection)?.peer == .observer { observerCount -= 1 }
    }

    /// The connection has ended. Who is a member may come back by another one.
    mutating func end(_ connection: ConnectionID) {
        if self[connection] == .observer { remove(connection) }
    }

    /// Forgets the observers that were silent for longer than this.
    mutating func removeObservers(silentSince limit: Duration) -> [ConnectionID] {
        let silent = entries.filter { $0.value.peer == .observer && $0.value.heardAt < limit }
        for connection in silent.keys { remove(connection) }
        return Array(silent.keys)
    }
}
