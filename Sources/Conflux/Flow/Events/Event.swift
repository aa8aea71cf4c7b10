import ConfluxCoding
import ConfluxVocabulary

/// Something that stores of different states handle, each in its own way.
///
/// ```swift
/// struct LoggedIn: Event { var user: String }
///
/// struct Account: Model, EventHandling {
///     static let events = EventHandlers<Action>().on(LoggedIn.self) { .setUser($0.user) }
///     ...
/// }
///
/// Scope.current.send(LoggedIn(user: "foo"))
/// ```
///
/// An event is handled as an action of each state: it is checked, committed, observed and recorded like
/// one that was dispatched globally.
///
/// If a node is connected in the scope, the event goes to the log, and reaches the stores of every process.
public protocol Event: Codable, Sendable {
    /// The event's name in the log: 1 to 64 characters of `a-z 0-9 . _ -`, the same in every process. Unless stated, it
    /// is the name of the type, in lower case.
    static var name: String { get }
    /// Whether other processes get the event; true unless stated.
    static var isShared: Bool { get }
}

extension Event {
    /// The name of the type, in lower case.
    public static var name: String {
        String(
            "\(Self.self)".lowercased().filter { Name(String($0)) != nil }
                .prefix(Name.lengthMax))
    }

    /// They get it.
    public static var isShared: Bool { true }
}

/// A state, a ``Model`` or the value of a ``Storage``, whose stores handle events.
public protocol EventHandling: SendableMetatype {
    /// What can happen to the state.
    associatedtype Action
    /// How the state handles each type of event.
    static var events: EventHandlers<Action> { get }
}

/// How a state handles events: it makes an action of each type of event that it handles.
public struct EventHandlers<Action>: Sendable {
    private typealias Decode =
        @Sendable (UnsafeBufferPointer<UInt8>, PayloadCoding) -> Result<Action?, CodingFailure>

    private var byType: [ObjectIdentifier: @Sendable (any Event) -> Action?] = [:]
    private var byName: [String: Decode] = [:]

    /// Makes a table that handles nothing.
    public init() {}

    /// Handles a type of events, in place of what handled it before.
    ///
    /// Its ``Event/name`` must keep the rule of names.
    ///
    /// - Parameters:
    ///   - type: The type of the events.
    ///   - action: Makes the action of an event; nil if this one doesn't concern the state. It must depend
    ///     on the event alone, and be the same in every process, like the rules of the state's actions.
    /// - Returns: The table with that.
    public func on<E: Event>(
        _ type: E.Type, _ action: @escaping @Sendable (E) -> Action?
    ) -> EventHandlers {
        precondition(Name(E.name) != nil, "\(E.self).name is no name: \(E.name)")
        precondition(
            byName[E.name] == nil || byType[ObjectIdentifier(type)] != nil,
            "two types of events have the name \(E.name): give \(E.self) another name")
        var table = self
        table.byType[ObjectIdentifier(type)] = { event in (event as? E).flatMap(action) }
        let coder = ActionCoder<E>(sizeBytesMax: .max)
        table.byName[E.name] = { payload, coding in
            do throws(CodingFailure) {
                return .success(action(try coder.decode(payload, as: coding)))
            } catch {
                return .failure(error)
            }
        }
        return table
    }

    /// What the state makes of an event; nil if it doesn't handle it.
    func action(for event: any Event) -> Action? {
        byType[ObjectIdentifier(Swift.type(of: event))]?(event)
    }

    /// The names of the events that the state handles, ascending.
    package var names: [Name] { byName.keys.compactMap { Name($0) }.sorted() }

    /// What the state makes of an event in the log; nil if it doesn't handle it.
    ///
    /// - Throws: Why the event can't be decoded.
    package func action(
        ofEvent name: Name, _ payload: UnsafeBufferPointer<UInt8>, as coding: PayloadCoding
    ) throws(CodingFailure) -> Action? {
        guard let decode = byName[name.text] else { return nil }
        return try decode(payload, coding).get()
    }

    /// The same for a payload that is an array.
    package func action(
        ofEvent name: Name, _ payload: Bytes, as coding: PayloadCoding
    ) throws(CodingFailure) -> Action? {
        guard let decode = byName[name.text] else { return nil }
        return try payload.withUnsafeBufferPointer { decode($0, coding) }.get()
    }
}

extension State {
    /// How the state handles events; nil if it handles none.
    package static var eventHandlers: EventHandlers<Action>? {
        func table<Handling: EventHandling>(of _: Handling.Type) -> EventHandlers<Action>? {
            Handling.events as? EventHandlers<Action>
        }
        return (Self.self as? any EventHandling.Type).flatMap { table(of: $0) }
    }
}

/// The events of a scope on their way to the log: the actions of a state without stores.
package final class SharedEvents: State {
    /// An event, and the names of the states that don't take it from the log: the scope sends their actions, or
    /// middleware has stopped these.
    package struct Action: Sendable {
        package let event: any Event
        package let others: [String]
    }

    package typealias Mutations = SharedEventMutations
}

/// No store takes these actions.
package struct SharedEventMutations: Mutations {
    package func commit(action: SharedEvents.Action, state: SharedEvents) {}
}

extension Scope {
    /// Sends an event to every store whose state handles it: in this scope and, if a node is connected in it, in every
    /// process.
    ///
    /// The states handle it in the order of their first use, except for stores that wait for others
    /// (``order(_:after:)``). Any two events, transactions or global actions reach all stores that
    /// they have in common in the same order.
    ///
    /// If a node is connected, the event is one entry of the log, with one number. Every replicated store of every state that
    /// handles it applies that entry, in every process. If middleware here listens to the actions of a state, the state's
    /// action is an entry of its own, next to the event's. All of them are taken or rejected together. An action that can't
    /// be encoded, or whose bridge has stopped, fails alone. If a process has stores of several of these states, all of them
    /// have changed before any of their observers is called. There are two exceptions: stores of classes with executors of
    /// their own, and stores that are catching up.
    ///
    /// If a scope has several nodes, the event goes by the first of them. An event that is not ``Event/isShared`` does
    /// not go to the log by itself.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - name: A short name of the dispatch, for middleware.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    /// - Returns: A handle, which ends when every store has handled the event, as that of a global
    ///   action does. ``DispatchHandle/receipt(within:)`` throws `noStore` if no store handles the event, and `rejected`
    ///   if the log has no state that does.
    @discardableResult
    public func send(
        _ event: some Event, _ name: String = "", file: StaticString = #file,
        function: StaticString = #function, line: UInt = #line
    ) -> DispatchHandle {
        send(
            event, DispatchLabel(name, file: file, function: function, line: line), watch: nil)
    }

    /// Sends an event.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - label: The sender's label.
    ///   - watch: Learns whether the event changes anything here.
    /// - Returns: A handle.
    func send(
        _ event: some Event, _ label: DispatchLabel, watch: ChangeWatch?
    ) -> DispatchHandle {
        _ = ThreadMark.outsideModels
        let tally = Tally()
        var parts: [any DispatchPart] = []
        var failure = DispatchError.noHandler(of: type(of: event))
        let isShared = watch == nil && type(of: event).isShared
        let log = isShared ? channel(of: SharedEvents.self).currentRoute?.route.sender : nil
        // The states whose actions go to the log next to the event, and whether any of them takes part.
        var (others, isRouted) = ([String](), false)
        // The place of the first state here that takes the event itself from the log.
        var place: Int?
        for (index, channel) in eventChannels.enumerated() {
            if let log, channel.takesFromLog(event, sentBy: log) {
                place = place ?? index
                continue
            }
            let route = channel.nameOfRoute(for: event)
            if let route { others.append(route) }
            do throws(DispatchError) {
                let part = try channel.part(of: event, label, watch) {
                    tally.report($0, order: index)
                }
                guard let part else { continue }
                parts.append(part)
                isRouted = isRouted || route != nil
            } catch {
                failure = error
            }
        }
        var count = parts.count
        if log != nil {
            // What becomes of the actions next to it becomes of it. If no state here takes it, any store here counts more.
            let (isSilent, order) = (isRouted && place == nil, place ?? .max - 1)
            if !isSilent { count += 1 }
            parts.append(
                ActionPart<SharedEvents>(
                    MiddlewareTable.Passing(
                        unseen: SharedEvents.Action(event: event, others: others), label),
                    to: .all, in: self
                ) { if !isSilent { tally.report($0, order: order) } })
        }
        if parts.isEmpty { tally.report(.failed(failure), order: 0) }
        tally.expect(max(count, 1))
        take(parts) { watch?.end(isChanged: false) }
        return tally.handle
    }
}

/// A channel of a state that may handle events.
protocol EventChannel: StateChannel {
    /// Throws if the state handles an event by an action that takes a route.
    func checkLock(sending event: any Event) throws(StoreError)

    /// Whether the state handles an event once it comes back from the log: no middleware would change or stop its action.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - sender: Who takes the event to the log.
    /// - Returns: Whether it does.
    func takesFromLog(_ event: any Event, sentBy sender: ObjectIdentifier) -> Bool

    /// The name of the state, if it handles an event by an action that takes a route.
    func nameOfRoute(for event: any Event) -> String?

    /// Makes the state's part of an event: its action, as the middleware has left it.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - label: The sender's label.
    ///   - watch: Learns whether the action changes anything here.
    ///   - completion: Called once with the outcome of the state's stores.
    /// - Returns: The part; nil if the state doesn't handle the event, or has no stores.
    /// - Throws: `intercepted` if middleware stops the event for this state.
    func part(
        of event: any Event, _ label: DispatchLabel, _ watch: ChangeWatch?,
        _ completion: @escaping @Sendable (Outcome) -> Void
    ) throws(DispatchError) -> (any DispatchPart)?
}

extension GlobalChannel: EventChannel {
    func checkLock(sending event: any Event) throws(StoreError) {
        guard isRouted, events?.action(for: event) != nil else { return }
        throw .noLock(over: S.self)
    }

    func takesFromLog(_ event: any Event, sentBy sender: ObjectIdentifier) -> Bool {
        // Before a node routes a state, the log has learnt what the state handles.
        currentRoute?.route.sender == sender && events?.action(for: event) != nil
            && scope.middleware.observers(of: nil).ignoreDispatches(of: S.Action.self)
    }

    func nameOfRoute(for event: any Event) -> String? {
        guard isRouted, events?.action(for: event) != nil else { return nil }
        return (S.self as? any BridgedState.Type)?.name
    }

    func part(
        of event: any Event, _ label: DispatchLabel, _ watch: ChangeWatch?,
        _ completion: @escaping @Sendable (Outcome) -> Void
    ) throws(DispatchError) -> (any DispatchPart)? {
        guard let action = events?.action(for: event),
            registry.withLock({ !$0.isEmpty || $0.isRouted })
        else {
            return nil
        }
        guard let passing = scope.middleware.pass(action, to: nil as StoreCore<S>?, label: label)
        else { throw .intercepted }
        return ActionPart<S>(passing, to: .all, in: scope, watch: watch, completion)
    }
}
