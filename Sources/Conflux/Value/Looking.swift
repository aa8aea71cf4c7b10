/// A part of a value with its name, for one observation.
@usableFromInline
struct ObservedPart<State: ValueHolder> {
    let name: PartialKeyPath<State.Value>
    /// Compares the part with what it was when this was called before. False at the first time. Called in the lane.
    let hasChanged: (ValueState<State.Value, State.Action>) -> Bool

    @usableFromInline
    init(
        _ name: PartialKeyPath<State.Value>,
        _ hasChanged: @escaping (ValueState<State.Value, State.Action>) -> Bool
    ) {
        (self.name, self.hasChanged) = (name, hasChanged)
    }

    @inlinable
    init<Part: Equatable & Sendable>(_ part: any KeyPath<State.Value, Part> & Sendable) {
        var last: Part?
        let offset = MemoryLayout<State.Value>.offset(of: part)
        self.init(part) { state in
            let new = state.part(part, at: offset)
            defer { last = new }
            return last.map { $0 != new } ?? false
        }
    }
}

extension Store where State: ValueHolder {
    @usableFromInline typealias Look = (ValueState<State.Value, State.Action>) -> Void

    /// A signal of what is found in the value: when an observation begins, between two actions, and then after
    /// each action that was applied.
    ///
    /// - Parameter begin: Called for each observation. It gets the function that sends, and returns the function that
    ///   looks, which is called in the lane, holding no lock.
    /// - Returns: A signal that doesn't keep the store alive.
    @usableFromInline
    func looking<Sent>(_ begin: @escaping (_ send: @escaping (Sent) -> Void) -> Look) -> Signal<
        Sent
    > {
        let (core, state) = (core, computed.state._state)
        return .of { observation, send in
            // Used by the thread that serves the lane alone.
            nonisolated(unsafe) let look = begin(send)
            let subscription = LateDisposable(of: observation)
            core.run { [weak subscription] in
                // Whoever may dispose of the subscription keeps it.
                guard observation.isActive else { return }
                let observer = state.add(observation, look)
                subscription?.become(observer)
                if observation.isActive { look(state) }
            }
            return subscription
        }.ending(with: core)
    }

    /// Observes some parts, from their present values on if `isFromNow`.
    @usableFromInline
    func observe(
        _ parts: [ObservedPart<State>], _ isFromNow: Bool, _ object: AnyObject?,
        _ body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        let call = vouching(for: body, as: (@Sendable (State.Value) -> Void).self)
        return changes(of: parts, fromNow: isFromNow, named: false).begin(
            Observation(owner: object), on: body.isolation
        ) {
            call($0.0)
        }
    }

    /// Observes some parts, with the names of those that an action changed.
    @usableFromInline
    func observe(
        _ parts: [ObservedPart<State>], _ isFromNow: Bool, _ object: AnyObject?,
        _ body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        let call = vouching(
            for: body,
            as: (@Sendable (State.Value, Set<PartialKeyPath<State.Value>>) -> Void).self)
        return changes(of: parts, fromNow: isFromNow, named: true).begin(
            Observation(owner: object), on: body.isolation
        ) {
            call($0.0, $0.1)
        }
    }

    /// The value after each action that changed one of some parts, with the names of those that it changed; before that,
    /// if wanted, the present value with all names. To be observed once.
    private func changes(
        of parts: [ObservedPart<State>], fromNow isFromNow: Bool, named isNamed: Bool
    ) -> Signal<(State.Value, Set<PartialKeyPath<State.Value>>)> {
        looking { send in
            var isFirst = true
            return { state in
                var hasChanged = isFirst ? isFromNow : parts.isEmpty
                var names = Set<PartialKeyPath<State.Value>>()
                for part in parts where part.hasChanged(state) || isFirst {
                    hasChanged = hasChanged || !isFirst
                    if isNamed { names.insert(part.name) }
                }
                isFirst = false
                if hasChanged { send((state.held, names)) }
            }
        }
    }
}

extension ValueState {
    /// Has a function called in the lane after each change.
    func add(
        _ observation: Observation, _ look: @escaping (ValueState) -> Void
    ) -> any Disposable {
        // The state holds its observers, which must not hold the state. It lives while it calls them.
        let state = Unmanaged.passUnretained(self)
        return looks.add(observation) { state._withUnsafeGuaranteedRef(look) }
    }
}
