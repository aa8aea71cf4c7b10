extension Store where State: ValueHolder {
    /// The whole value, as it is now. Safe on any thread.
    ///
    /// Reading a part by its name, as in `stock.left`, copies that part alone.
    @inlinable
    public var value: State.Value {
        let mark = computed.state.markOfReader()
        if mark.pointee.isTracking { computed.state.track { \.self } }
        return computed.state.read(mark) { $0 }
    }

    /// A part of the value, as it is now. Safe on any thread.
    ///
    /// A part that bears the name of one of the store's own members is found in ``value``.
    ///
    /// - Parameter keyPath: Which part.
    @inlinable
    public subscript<Value>(dynamicMember keyPath: KeyPath<State.Value, Value>) -> Value {
        let mark = computed.state.markOfReader()
        if mark.pointee.isTracking { computed.state.track { keyPath } }
        return computed.state.read(mark) { $0[keyPath: keyPath] }
    }

    /// The changes of a part of the value: each with its old and its new value, which differ.
    ///
    /// ```swift
    /// for await change in stock.changes(of: \.left) { print(change.old, change.new) }
    /// ```
    ///
    /// Changes count from this call on. While a reader is slow, what happens meanwhile becomes one
    /// change, from the first old to the last new value. The sequence ends when the store is
    /// released or the reading task is cancelled. Each loop over it sees all changes.
    ///
    /// - Parameter keyPath: Which part. It is read after each action, under the store's lock, and
    ///   its last value is kept.
    /// - Returns: A sequence that doesn't keep the store alive.
    public func changes<Value: Equatable & Sendable>(
        of keyPath: any KeyPath<State.Value, Value> & Sendable
    ) -> ValueChanges<State.Value, Value> {
        ValueChanges(lane: core, state: computed.state.asValue, isSame: ==) {
            $0[keyPath: keyPath]
        }
    }

    /// The changes of the whole value: one for each action that was applied, or for several in a
    /// row while a reader is slow.
    ///
    /// As ``changes(of:)`` otherwise. The last value is kept for the next change's old value, so
    /// that the next action copies the large parts that it writes.
    public var changes: ValueChanges<State.Value, State.Value> {
        ValueChanges(
            lane: core, state: computed.state.asValue, isSame: { _, _ in false },
            part: { $0 })
    }
}
