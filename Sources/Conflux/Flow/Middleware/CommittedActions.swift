extension Store {
    /// The actions that this store commits from the observation on, each with its place, time and origin. Refused
    /// actions are not among them.
    ///
    /// Every process that hosts the store observes every action. To answer an action once, by another action or by a
    /// letter, let only its origin react:
    ///
    /// ```swift
    /// orders.committedActions.observe { commit in
    ///     guard commit.isOwn, case .place(let order) = commit.action else { return }
    ///     orders.dispatch(.acknowledge(order))
    /// }
    /// ```
    ///
    /// If that process dies in between, nobody reacts. If it must not be lost, keep what is to be done in the state, and
    /// let the state's check refuse that it is done twice: then any process may do it.
    ///
    /// Observers are called in the store's lane, after those of the value, and hold no lock. The state is then as the
    /// action left it. `values` keeps only the newest 64 for a slow reader; `values(keepingNewest:)` keeps more.
    public var committedActions: Signal<CommittedAction<State>> {
        Signal(start: { [core] observation, send in
            core.ending(
                core.scope.middleware.register(
                    CommitTap<State>(observation: observation, send: send), for: core))
        }).ending(with: core)
    }
}

extension ReadOnlyStore {
    /// The actions that the store commits, as ``Store/committedActions``.
    public var committedActions: Signal<CommittedAction<State>> { _store.committedActions }
}

/// Gives the actions that one store has committed to one observation.
private struct CommitTap<Observed: State>: CommitObserver {
    let observation: Observation
    let send: @Sendable (CommittedAction<Observed>) -> Void

    func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
        guard refusal == nil, let commit = commit as? CommittedAction<Observed> else { return }
        if observation.isActive { send(commit) } else { observation.close() }
    }
}
