/// Mutations that may refuse an action before anything has changed, and that know an action's place, time and
/// origin, and draw random numbers.
///
/// A reducer that takes these from its context, and not from the system, changes every replica of
/// its state in the same way. A refused action is a no-op: ``DispatchHandle/receipt(within:)`` throws the refusal, and
/// the state stays as it was, on every replica alike.
public protocol ContextMutations: Mutations {
    // Restated, so that it is inferred from the functions below.
    /// The state that is changed.
    associatedtype State

    /// Judges an action; must change nothing. Lets everything pass unless implemented.
    ///
    /// - Parameters:
    ///   - action: What is to happen.
    ///   - state: The store's state before it.
    ///   - context: The action's place, time, origin and random numbers; the same that the commit
    ///     gets.
    /// - Throws: Why the action is refused. The error becomes ``DispatchError/reason``.
    func check(action: State.Action, state: State, context: ActionContext) throws

    /// Changes the state, synchronously; called as ``Mutations/commit(action:state:)`` is, with an action that
    /// passed the check.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - state: The store's state.
    ///   - context: The action's place, time, origin and random numbers.
    func commit(action: State.Action, state: State, context: ActionContext)
}

extension ContextMutations {
    /// Refuses nothing.
    @inlinable
    public func check(action: State.Action, state: State, context: ActionContext) throws {}

    /// Commits outside of any store, at sequence number zero and the present time.
    public func commit(action: State.Action, state: State) {
        commit(action: action, state: state, context: ActionContext(timestamp: WallClock.now))
    }

    /// Commits what the check lets pass, with the same context.
    @inlinable
    public func _perform(
        action: State.Action, state: State, context: () -> ActionContext
    ) throws {
        let context = context()
        try check(action: action, state: state, context: context)
        commit(action: action, state: state, context: context)
    }
}
