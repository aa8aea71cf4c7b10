import Conflux
import ConfluxProtocol

/// Sends one action of another route in a way of its own, for example later, or under a lease.
final class EntryRoute<S: BridgedState>: ActionRoute {
    /// Sends an encoded action.
    typealias Send =
        @Sendable (
            _ entry: (target: BatchTarget, payload: [UInt8]), _ outbox: Outbox, _ mayWait: Bool
        ) throws(DispatchError) -> DispatchHandle

    private let route: OutboxRoute<S>
    private let send: Send

    private init(_ route: OutboxRoute<S>, _ send: @escaping Send) {
        (self.route, self.send) = (route, send)
    }

    /// - Returns: A route; the former one if that leads nowhere, so that it says why.
    static func of(_ route: any ActionRoute<S>, send: @escaping Send) -> any ActionRoute<S> {
        (route as? OutboxRoute<S>).map { EntryRoute($0, send) } ?? route
    }

    func submit(_ action: S.Action, mayWait: Bool) -> DispatchHandle {
        do throws(DispatchError) {
            return try send(try route.entry(of: action), route.outbox, mayWait)
        } catch {
            return DispatchHandle(.failed(error))
        }
    }

    func conditional(on version: StoreVersion) -> any ActionRoute<S> {
        preconditionFailure("a route of one dispatch gets no condition")
    }
}
