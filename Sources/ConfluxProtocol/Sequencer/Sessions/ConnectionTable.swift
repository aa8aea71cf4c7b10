import ConfluxVocabulary

/// The connections that said hello in this tenure. A connection that is not here has no session
/// (rule 8).
struct ConnectionTable: Sendable {
    /// What a connection is for.
    enum Peer: Sendable, Equatable {
        /// A session's present connection.
        case member(Incarnation)
        /// A connection that only reads, or that visits.
        case observer

        /// The session that its welcome named.
        var session: Incarnation {
            switch self {
            case .member(let incarnation): incarnation
            case .observer: .none
            }
        }
    }

    private var peers: [ConnectionID: Peer] = [:]
    /// How many observers there are. *Use*: to bound them.
    private(set) var observerCount = 0

    subscript(connection: ConnectionID) -> Peer? { peers[connection] }

    var all: some Collection<ConnectionID> { peers.keys }

    mutating func insert(_ connection: ConnectionID, as peer: Peer) {
        remove(connection)
        if peer == .observer { observerCount += 1 }
        peers[connection] = peer
    }

    mutating func remove(_ connection: ConnectionID) {
        if peers.removeValue(forKey: connection) == .observer { observerCount -= 1 }
    }
}
