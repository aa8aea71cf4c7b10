import Synchronization

/// Observers of a store's value: called in the store's lane, after each action that changed what they
/// observe.
extension Store where State: ValueHolder {
    /// A part of the value, as a signal of distinct values: the present one first, then each that differs
    /// from the one before.
    ///
    /// ```swift
    /// stock.changed(\.left).observe { print($0) }
    /// for await left in stock.changed(\.left).values { print(left) }
    /// ```
    ///
    /// The present value comes before `observe` returns where the store is on `.immediate` and nothing is
    /// under way, and else soon after. ``changes(of:)`` gives old and new values together.
    ///
    /// - Parameter part: Which part. It is read after each action, under the store's lock, and its last
    ///   value is kept for each observer.
    /// - Returns: A signal that doesn't keep the store alive.
    public func changed<Part: Equatable & Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable
    ) -> Signal<Part> {
        changed(part, isSame: ==)
    }

    /// A part of the value, as a signal of values that differ by a comparison of your own.
    ///
    /// - Parameters:
    ///   - part: Which part.
    ///   - isSame: Whether a value, the second one, is to be passed over behind another. Called in the
    ///     store's lane, holding no lock.
    /// - Returns: As ``changed(_:)`` does.
    public func changed<Part: Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable,
        isSame: @escaping @Sendable (Part, Part) -> Bool
    ) -> Signal<Part> {
        listening { send in
            let last = Last<Part>()
            return { state, _ in
                let new = state._read { $0[keyPath: part] }
                if let old = last.value, isSame(old, new) { return }
                last.value = new
                send(new)
            }
        }
    }

    /// Calls a function after each action that changed one of some parts, or, with none given, after each
    /// action that was applied.
    ///
    /// ```swift
    /// let observation = wallet.observe(\.amount, \.currency) { wallet in print(wallet.amount) }
    /// observation.dispose()
    ///
    /// wallet.observe(\.amount, duringScopeOf: self) { [weak self] wallet in self?.show(wallet) }
    /// ```
    ///
    /// - Parameters:
    ///   - part: Which parts.
    ///   - object: What ends the observation with its `deinit`, as in ``Signal/observe(duringScopeOf:_:)``. Not
    ///     retained.
    ///   - body: Called with the value in the store's lane, holding no lock. It may dispatch.
    /// - Returns: What ends it. Letting go of it ends nothing: put it into a ``DisposableScope`` for that.
    @discardableResult
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        duringScopeOf object: AnyObject? = nil, body: @escaping (State.Value) -> Void
    ) -> any Disposable {
        observe(repeat each part, duringScopeOf: object) { value, _ in body(value) }
    }

    /// Calls a function after each action that changed one of some parts, with those that it changed.
    ///
    /// ```swift
    /// wallet.observe(\.amount, \.currency) { wallet, changed in
    ///     if changed.contains(\.currency) { print(wallet.currency) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - part: Which parts; with none given, the function is called after each action that was applied.
    ///   - object: What ends the observation with its `deinit`. Not retained.
    ///   - body: Called with the value and those of the parts that differ from what they were at the call
    ///     before, in the store's lane, holding no lock. It may dispatch.
    /// - Returns: What ends it. Letting go of it ends nothing: put it into a ``DisposableScope`` for that.
    @discardableResult
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        duringScopeOf object: AnyObject? = nil,
        body: @escaping (State.Value, Set<PartialKeyPath<State.Value>>) -> Void
    ) -> any Disposable {
        var paths: [@Sendable () -> any ObservedPart<State.Value>] = []
        repeat paths.append(Self.observed(each part))
        let observed = paths
        let signal: Signal<(State.Value, Set<PartialKeyPath<State.Value>>)> = listening { send in
            let parts = observed.map { $0() }
            return { state, isFirst in
                if isFirst, parts.isEmpty { return }
                let value = state._read { $0 }
                // No key path literal: the compiler can't make one beside a parameter pack.
                let changed = parts.filter { $0.update(with: value) }.map { $0.keyPath }
                if isFirst || changed.isEmpty && !parts.isEmpty { return }
                send((value, Set(changed)))
            }
        }
        guard let object else { return signal.observe { body($0.0, $0.1) } }
        return signal.observe(duringScopeOf: object) { body($0.0, $0.1) }
    }

    private static func observed<Part: Equatable & Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable
    ) -> @Sendable () -> any ObservedPart<State.Value> {
        { LastPart(part) }
    }

    /// A signal of what is found at looks at the value, in the store's lane.
    ///
    /// - Parameter begin: Called for each observation with what sends. What it returns looks: once at the
    ///   beginning, between two actions, and after each action from then on.
    /// - Returns: A signal that doesn't keep the store alive.
    func listening<Sent>(
        _ begin:
            @escaping @Sendable (_ send: @escaping @Sendable (Sent) -> Void)
            -> ValueListener<State.Value>.Look
    ) -> Signal<Sent> {
        let (lane, state): (any ListenedLane, ValueState<State.Value>) =
            (core, computed.state.asValue)
        return Signal { observation, send in
            ValueListener(observation, begin(send)).listen(to: state, in: lane)
        }
    }
}

/// What a part was when it was looked at last. Touched in the store's lane, one look after the other.
final class Last<Part: Sendable>: Sendable {
    private let content = Mutex<Part?>(nil)

    var value: Part? {
        get { content.withLock { $0 } }
        set {
            // What is replaced is released outside the lock: that runs user code.
            var other = newValue
            content.withLock { swap(&$0, &other) }
        }
    }
}

/// A part that is compared with what it was.
private protocol ObservedPart<Root>: Sendable {
    associatedtype Root
    var keyPath: PartialKeyPath<Root> { get }
    /// Whether it is another than at the last look.
    func update(with root: Root) -> Bool
}

private struct LastPart<Root, Part: Equatable & Sendable>: ObservedPart {
    private let path: any KeyPath<Root, Part> & Sendable
    private let last = Last<Part>()

    init(_ path: any KeyPath<Root, Part> & Sendable) {
        self.path = path
    }

    var keyPath: PartialKeyPath<Root> { path }

    func update(with root: Root) -> Bool {
        let new = root[keyPath: path]
        if last.value == new { return false }
        last.value = new
        return true
    }
}

/// Looks at a value for an observer.
final class ValueListener<Root: Sendable>: ValueObserver {
    /// Called in the store's lane, holding no lock.
    typealias Look = @Sendable (ValueState<Root>, _ isFirst: Bool) -> Void

    private let observation: Observation
    private let look: Look

    init(_ observation: Observation, _ look: @escaping Look) {
        self.observation = observation
        self.look = look
    }

    /// Begins, between two actions.
    ///
    /// - Parameters:
    ///   - state: What to observe.
    ///   - lane: Its lane; nil for who works in it.
    /// - Returns: What ends it.
    func listen(to state: ValueState<Root>, in lane: (any ListenedLane)?) -> any Disposable {
        let begin: @Sendable () -> Void = { [self] in
            state.add(self)
            if observation.isActive { look(state, true) }
            // Its end may have come before its beginning.
            if !observation.isActive { state.remove(self) }
        }
        if let lane { lane.run(begin) } else { begin() }
        return AnyDisposable { [weak self, weak state] in
            if let self, let state { state.remove(self) }
        }
    }

    func look(at state: ValueState<Root>) {
        guard observation.isActive else { return observation.close() }
        look(state, false)
    }
}
