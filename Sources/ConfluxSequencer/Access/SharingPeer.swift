import ConfluxZeroMQ

/// Whose share of a bound something counts for before the machine sees it: that of a key, for all its connections,
/// or without keys that of a connection.
enum SharingPeer: Sendable, Hashable {
    /// All who connect with this key.
    case key(CurvePublicKey)
    /// A connection without a key.
    case connection(RoutingID)

    init(_ route: RoutingID, key: CurvePublicKey?) {
        self = key.map { .key($0) } ?? .connection(route)
    }
}
