import ConfluxProtocol
import ConfluxZeroMQ

/// The machine's names of connections, and libzmq's. Confined to the thread that owns the sockets.
///
/// libzmq does not tell when a connection is gone, so names are kept within a bound: *at the
/// bound* the oldest is dropped. Whoever had it gets a new name with its next message, and is told
/// to say hello again.
struct ConnectionNames {
    static let countMax = 100_000

    private var names: [RoutingID: ConnectionID] = [:]
    private var routes: [ConnectionID: RoutingID] = [:]
    /// The lowest name that may still be in use.
    private var oldest: UInt64 = 1
    private var next: UInt64 = 1

    mutating func name(of route: RoutingID) -> ConnectionID {
        if let known = names[route] { return known }
        let name = ConnectionID(rawValue: next)
        next += 1
        names[route] = name
        routes[name] = route
        while names.count > Self.countMax {
            remove(ConnectionID(rawValue: oldest))
            oldest += 1
        }
        return name
    }

    func route(of name: ConnectionID) -> RoutingID? { routes[name] }

    /// The connection is gone.
    mutating func remove(_ name: ConnectionID) {
        if let route = routes.removeValue(forKey: name) { names[route] = nil }
    }
}
