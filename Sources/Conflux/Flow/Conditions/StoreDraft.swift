import ConfluxVocabulary

/// A copy of a replicated store's value, on which actions are tried before they are dispatched.
package struct StoreDraft<S: ValueHolder & ReplicatedState> {
    private let core: StoreCore<S>
    private let state: ValueState<S.Value, S.Action>
    /// The version of the store that was copied.
    package let version: StoreVersion
    /// The value, with the actions that were tried.
    package private(set) var value: S.Value
    private var sequence: SequenceNumber

    /// Copies a store's value. Nothing may be changing the store.
    package init(of store: Store<S>) {
        core = store.core
        state = store.computed.state._state
        version = core.version
        value = state.content
        sequence = version.sequence
    }

    /// Tries an action at the present time, as the store's next.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - incarnation: The session that would dispatch it; nil before the first.
    /// - Throws: Why the state refuses it. Then the value has not changed.
    package mutating func apply(_ action: S.Action, by incarnation: Incarnation?) throws {
        let context = ActionContext(
            sequence: sequence.next, timestamp: core.timekeeper?.logTime ?? WallClock.now,
            origin: incarnation.map { Origin(incarnation: $0, counter: 0) }, seed: core.seed,
            schemaVersion: core.versionInForce.load(ordering: .acquiring))
        _ = try state.reduce(&value, action, context)
        sequence = context.sequence
    }
}
