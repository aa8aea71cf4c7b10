import ConfluxProtocol
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

extension ConnectionID {
    /// The machine's id for a connection.
    init(_ route: RoutingID) {
        self.init(rawValue: UInt64(route.number))
    }
}

extension RoutingID {
    /// The connection with one of the machine's ids.
    init(_ connection: ConnectionID) {
        self.init(number: UInt32(truncatingIfNeeded: connection.rawValue))
    }
}
