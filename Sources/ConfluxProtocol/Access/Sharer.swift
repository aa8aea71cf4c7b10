import ConfluxVocabulary

/// Whose share of a bound something counts for: the key's, for all its connections and sessions together. Without
/// keys nothing tells one process from another for longer than its connection or session lasts.
enum Sharer: Sendable, Hashable {
    /// All who connect with the key of this name.
    case key(Name)
    /// A connection without a key.
    case connection(ConnectionID)
    /// A session without a key.
    case session(Incarnation)
}

extension Principal {
    /// Whose share it counts for what the peer on this connection asks for.
    func sharer(on connection: ConnectionID) -> Sharer {
        name.map { .key($0) } ?? .connection(connection)
    }
}

extension Hello {
    /// Whose share it counts for that this hello waits.
    func sharer(on connection: ConnectionID) -> Sharer {
        owner.map { .key($0.name) } ?? .connection(connection)
    }
}

extension Session {
    /// Whose share it counts for what the session's node has.
    var sharer: Sharer { owner.map { .key($0) } ?? .session(incarnation) }
}
