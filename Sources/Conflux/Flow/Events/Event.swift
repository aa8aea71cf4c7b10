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
public protocol Event: Codable, Sendable {}

/// A state, a ``Model`` or the value of a ``Storage``, whose stores handle events.
public protocol EventHandling: SendableMetatype {
    /// What can happen to the state.
    associatedtype Action
    /// How the state handles each type of event.
    static var events: EventHandlers<Action> { get }
}

/// How a state handles events: it makes an action of each type of event that it handles.
public struct EventHandlers<Action>: Sendable {
    private var byType: [ObjectIdentifier: @Sendable (any Event) -> Action?] = [:]

    /// Makes a table that handles nothing.
    public init() {}

    /// Handles a type of events, in place of what handled it before.
    ///
    /// - Parameters:
    ///   - type: The type of the events.
    ///   - action: Makes the action of an event; nil if this one doesn't concern the state. It must depend
    ///     on the event alone.
    /// - Returns: The table with that.
    public func on<E: Event>(
        _ type: E.Type, _ action: @escaping @Sendable (E) -> Action?
    ) -> EventHandlers {
        var table = self
        table.byType[ObjectIdentifier(type)] = { event in (event as? E).flatMap(action) }
        return table
    }

    /// What the state makes of an event; nil if it doesn't handle it.
    func action(for event: any Event) -> Action? {
        byType[ObjectIdentifier(Swift.type(of: event))]?(event)
    }
}

extension Scope {
    /// Sends an event to every store of this scope whose state handles it.
    ///
    /// The states handle it in the order of their first use, except for stores that wait for others
    /// (``order(_:after:)``). Any two events, transactions or global actions reach all stores that
    /// they have in common in the same order. If a node bridges a state, or hosts a store of it,
    /// the state's action goes to the log instead. It then reaches all processes, in the order of
    /// the log. The actions of several such states stand next to each other there, and are taken or rejected together;
    /// one that can't be encoded, or whose bridge has stopped, fails alone. In a process that has stores of several of
    /// these states, all of these stores have changed before any of their observers is called. Stores of classes with
    /// executors of their own are excepted, and so are stores that are catching up.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - name: A short name of the dispatch, for middleware.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    /// - Returns: A handle, which ends when every store has handled the event, as that of a global
    ///   action does. ``DispatchHandle/receipt(within:)`` throws `noStore` if no store handles the event.
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
        for (index, channel) in eventChannels.enumerated() {
            do throws(DispatchError) {
                let part = try channel.part(of: event, label, watch) {
                    tally.report($0, order: index)
                }
                if let part { parts.append(part) }
            } catch {
                failure = error
            }
        }
        if parts.isEmpty { tally.report(.failed(failure), order: 0) }
        tally.expect(max(parts.count, 1))
        take(parts) { watch?.end(isChanged: false) }
        return tally.handle
    }
}

/// A channel of a state that may handle events.
protocol EventChannel: StateChannel {
    /// Throws if the state handles an event by an action that takes a route.
    func checkLock(sending event: any Event) throws(StoreError)

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
        guard registry.withLock({ $0.isRouted }), events?(event) != nil else { return }
        throw .noLock(over: S.self)
    }

    func part(
        of event: any Event, _ label: DispatchLabel, _ watch: ChangeWatch?,
        _ completion: @escaping @Sendable (Outcome) -> Void
    ) throws(DispatchError) -> (any DispatchPart)? {
        guard let action = events?(event), registry.withLock({ !$0.isEmpty || $0.isRouted }) else {
            return nil
        }
        guard let passing = scope.middleware.pass(action, to: nil as StoreCore<S>?, label: label)
        else { throw .intercepted }
        return ActionPart<S>(passing, to: .all, in: scope, watch: watch, completion)
    }
}
