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
        let (lane, state): (any ListenedLane, ValueState<State.Value>) =
            (core, computed.state.asValue)
        return Signal { observation, send in
            let listener = PartListener<State.Value, Part>(
                observation: observation, isSame: isSame, part: { $0._read { $0[keyPath: part] } },
                send: { old, new in
                    _ = old
                    send(new)
                }, sendsFirst: true)
            return listener.listen(to: state, in: lane)
        }
    }

    /// Calls a function after each action that changed one of some parts, or, with none given, after each
    /// action that was applied.
    ///
    /// ```swift
    /// let observation = wallet.observe(\.amount, \.currency) { wallet in print(wallet.amount) }
    /// observation.dispose()
    /// ```
    ///
    /// - Parameters:
    ///   - part: Which parts.
    ///   - body: Called with the value in the store's lane, holding no lock. It may dispatch.
    /// - Returns: What ends it. Letting go of it ends nothing: put it into a ``DisposableScope`` for that.
    @discardableResult
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        body: @escaping @Sendable (State.Value) -> Void
    ) -> any Disposable & Sendable {
        let comparisons = Comparisons<State.Value>(repeat each part)
        let (lane, state): (any ListenedLane, ValueState<State.Value>) =
            (core, computed.state.asValue)
        let signal = Signal<State.Value> { observation, send in
            let listener = PartListener<State.Value, State.Value>(
                observation: observation, isSame: comparisons.isSame, part: { $0._read { $0 } },
                send: { _, new in send(new) }, sendsFirst: false)
            return listener.listen(to: state, in: lane)
        }
        return signal.observe(body)
    }
}

/// Compares parts of two values.
private struct Comparisons<Root>: Sendable {
    let isSame: @Sendable (Root, Root) -> Bool

    init<each Part: Equatable & Sendable>(_ part: repeat any KeyPath<Root, each Part> & Sendable) {
        isSame = { old, new in
            var isEmpty = true
            for isEqual in repeat (old[keyPath: each part] == new[keyPath: each part]) {
                if !isEqual { return false }
                isEmpty = false
            }
            return !isEmpty
        }
    }
}

/// Tells an observer what becomes of a part of a value.
final class PartListener<Root: Sendable, Part: Sendable>: ValueObserver {
    private let observation: Observation
    private let isSame: @Sendable (Part, Part) -> Bool
    private let part: @Sendable (ValueState<Root>) -> Part
    private let send: @Sendable (Part?, Part) -> Void
    private let sendsFirst: Bool
    private let last = Mutex<Part?>(nil)

    init(
        observation: Observation, isSame: @escaping @Sendable (Part, Part) -> Bool,
        part: @escaping @Sendable (ValueState<Root>) -> Part,
        send: @escaping @Sendable (Part?, Part) -> Void,
        sendsFirst: Bool
    ) {
        self.observation = observation
        self.isSame = isSame
        self.part = part
        self.send = send
        self.sendsFirst = sendsFirst
    }

    /// Begins, between two actions.
    ///
    /// - Parameters:
    ///   - state: What to observe.
    ///   - lane: Its lane; nil for who works in it.
    /// - Returns: What ends it.
    func listen(to state: ValueState<Root>, in lane: (any ListenedLane)?) -> any Disposable {
        let begin: @Sendable () -> Void = { [self] in
            let first = part(state)
            last.withLock { $0 = first }
            state.add(self)
            if sendsFirst, observation.isActive { send(nil, first) }
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
        let new = part(state)
        let old = last.withLock { $0 }
        if let old, isSame(old, new) { return }
        // What is replaced is let go outside the lock.
        last.withLock { $0 = new }
        send(old, new)
    }
}
