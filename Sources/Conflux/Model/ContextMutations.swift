/// Mutations that want to know an action's place, time and origin, or draw random numbers.
///
/// A reducer that takes these from its context, and not from the system, changes every replica of
/// its state in the same way.
public protocol ContextMutations: Mutations {
    // Restated, so that it is inferred from the function below.
    /// The state that is changed.
    associatedtype State

    /// Changes the state, synchronously; called as ``Mutations/commit(action:state:)`` is.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - state: The store's state.
    ///   - context: The action's place, time, origin and random numbers.
    func commit(action: State.Action, state: State, context: ActionContext)
}

extension ContextMutations {
    /// Commits outside of any store, at sequence number zero and the present time.
    public func commit(action: State.Action, state: State) {
        commit(action: action, state: state, context: ActionContext(timestamp: WallClock.now))
    }

    /// Commits with the context. Refuses nothing.
    @inlinable
    public func _perform(
        action: State.Action, state: State, context: () -> ActionContext
    ) throws {
        commit(action: action, state: state, context: context())
    }
}

/// Mutations that may refuse an action before anything has changed.
///
/// A refused action is a no-op: ``DispatchHandle/receipt()`` throws the refusal, and the state stays
/// as it was, on every replica alike.
public protocol CheckedMutations: Mutations {
    // Restated, so that it is inferred from the function below.
    /// The state that is changed.
    associatedtype State

    /// Judges an action; must change nothing.
    ///
    /// - Parameters:
    ///   - action: What is to happen.
    ///   - state: The store's state before it.
    ///   - context: The action's place, time, origin and random numbers; the same that the commit
    ///     gets.
    /// - Throws: Why the action is refused. The error becomes ``DispatchError/reason``.
    func check(action: State.Action, state: State, context: ActionContext) throws
}

extension CheckedMutations {
    /// Commits what the check lets pass.
    @inlinable
    public func _perform(
        action: State.Action, state: State, context: () -> ActionContext
    ) throws {
        try check(action: action, state: state, context: context())
        commit(action: action, state: state)
    }
}

extension CheckedMutations where Self: ContextMutations {
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
