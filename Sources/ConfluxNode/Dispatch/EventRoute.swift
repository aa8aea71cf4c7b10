import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Sends the events of a scope to the log, for the states in other processes.
final class EventRoute: ActionRoute {
    private let outbox: Outbox

    init(_ outbox: Outbox) { self.outbox = outbox }

    var sender: ObjectIdentifier? { ObjectIdentifier(outbox) }

    func submit(_ action: SharedEvents.Action, mayWait: Bool) -> DispatchHandle {
        do throws(DispatchError) {
            let prepared = try entry(of: action)
            return prepared.send([prepared], mayWait: mayWait)[0]
        } catch {
            return DispatchHandle(.failed(error))
        }
    }

    func prepare(_ action: SharedEvents.Action) -> (any PreparedAction)? {
        // An event that can't be encoded fails when it is sent alone.
        try? entry(of: action)
    }

    func conditional(on version: StoreVersion) -> any ActionRoute<SharedEvents> {
        ClosedRoute<SharedEvents>(.conditionOfMany(SharedEvents.self))
    }

    private func entry(of action: SharedEvents.Action) throws(DispatchError) -> OutboxAction {
        let (target, payload) = try action.event.encoded(outbox.limits.payloadBytesMax)
        return OutboxAction(
            outbox: outbox, target: target, payload: payload,
            others: action.others.compactMap { Name($0) }.map { .json(.state($0)) })
    }

    /// Sends an event to every replicated store whose state handles it.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - outbox: The node's outbox.
    ///   - conditions: What must hold when the event has its turn.
    /// - Returns: Its handle.
    /// - Throws: `DispatchError`: `invalidAction` if the event can't be encoded.
    static func send(
        _ event: some Event, to outbox: Outbox, on conditions: [BatchTarget]
    ) throws(DispatchError) -> DispatchHandle {
        outbox.submit(
            [try event.encoded(outbox.limits.payloadBytesMax)], on: conditions, mayWait: false)[0]
    }

    /// Sends the events of a scope to an outbox, unless another node does that.
    static func begin(in scope: Scope, to outbox: Outbox) {
        let channel = scope.channel(of: SharedEvents.self)
        guard let former = channel.setRoute(EventRoute(outbox)) as? EventRoute,
            !former.outbox.isClosedForActions
        else { return }
        channel.setRoute(former)
    }

    /// Sends no more events of a scope to an outbox.
    static func end(in scope: Scope, to outbox: Outbox) {
        scope.channel(of: SharedEvents.self).replaceRoute(by: nil) {
            ($0 as? EventRoute)?.outbox === outbox
        }
    }
}

extension Event {
    /// The event as an entry of the log has it.
    fileprivate func encoded(_ sizeBytesMax: Int) throws(DispatchError) -> (BatchTarget, [UInt8]) {
        do throws(CodingFailure) {
            let payload = try ActionCoder<Self>(sizeBytesMax: sizeBytesMax).encode(self, as: .json)
            return (.json(.event(try Name(eventOf: Self.self))), payload)
        } catch {
            throw DispatchError(
                code: .invalidAction,
                message: """
                    The event \(Self.self) can't be sent to the log. Send one that can, or make it stay here \
                    (isShared): \(error)
                    """, reason: error)
        }
    }
}

extension BatchTarget {
    fileprivate static func json(_ target: Target) -> BatchTarget {
        BatchTarget(target: target, schemaVersion: 1, coding: .json)
    }
}

extension Name {
    fileprivate init<E: Event>(eventOf type: E.Type) throws(CodingFailure) {
        guard let name = Name(E.name) else {
            throw CodingFailure(.wrongType, "its name, \"\(E.name)\", breaks the rule of names")
        }
        self = name
    }
}
