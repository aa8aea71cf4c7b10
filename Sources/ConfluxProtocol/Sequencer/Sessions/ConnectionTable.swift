import ConfluxVocabulary

/// The connections that said hello in this term. A connection that is not here has no session
/// (rule 8).
struct ConnectionTable: Sendable {
    /// What a connection is for.
    enum Peer: Sendable, Equatable {
        /// A session's present connection.
        case member(Incarnation)
        /// A connection that only reads.
        case observer

        /// The session that its welcome named.
        var session: Incarnation {
            switch self {
            case .member(let incarnation): incarnation
            case .observer: .none
            }
        }
    }

    private var peers: [ConnectionID: (peer: Peer, sharer: Sharer)] = [:]
    /// How many observers there are, and whose. *Use*: to bound them.
    private(set) var observers = Shares<Sharer>()

    subscript(connection: ConnectionID) -> Peer? { peers[connection]?.peer }

    var all: some Collection<ConnectionID> { peers.keys }

    func checkInvariants() throws(BrokenInvariant) {
        let count = peers.values.count { $0.peer == .observer }
        try hold(observers.total == count, "\(count) observers, and \(observers.total) are counted")
    }

    mutating func insert(_ connection: ConnectionID, as peer: Peer, of sharer: Sharer) {
        remove(connection)
        if peer == .observer { observers.add(of: sharer) }
        peers[connection] = (peer, sharer)
    }

    mutating func remove(_ connection: ConnectionID) {
        guard let (peer, sharer) = peers.removeValue(forKey: connection) else { return }
        if peer == .observer { observers.remove(of: sharer) }
    }
}
