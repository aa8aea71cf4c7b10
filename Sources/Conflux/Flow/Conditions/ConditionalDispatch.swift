import ConfluxVocabulary

/// Dispatches that the sequencer takes only if a store has not changed.
///
/// ```swift
/// let version = hall.version                       // before the state: see `version`
/// guard hall.price == 20 else { return }
/// try await hall.dispatch(.reprice(30), ifUnchangedSince: version).receipt()
/// ```
extension Store where State: ReplicatedState {
    /// The version of what this store has applied; zero before a node replicates it.
    ///
    /// The number rises with every entry that concerns the store, even one that is refused. The state may be newer than
    /// the version, never older. So read the version first, and then the state: a condition on it does not hold if the
    /// state has changed in between.
    public var version: StoreVersion { core.version }

    /// Dispatches an action to this store, on condition that the store has not changed.
    ///
    /// The sequencer compares: it takes the action only if no entry behind the version concerns the store. It is as safe
    /// to try again as any dispatch, and of several with the same version, one is taken.
    ///
    /// The store must be replicated. Otherwise the dispatch fails.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - version: The version of the state on which the action is based: ``version``, or that of a
    ///     ``DispatchError/version`` after another look at the state.
    /// - Returns: A handle to wait for the action's receipt with. If the store has changed, the receipt throws a
    ///   ``DispatchError`` with the code ``DispatchError/Code/conflict``, and the action never takes effect.
    @discardableResult
    public func dispatch(
        _ action: State.Action, ifUnchangedSince version: StoreVersion
    ) -> DispatchHandle {
        core.dispatch(action, ifUnchangedSince: version)
    }
}

extension Actions where State: ReplicatedState {
    /// Dispatches an action to the store, on condition that the store has not changed.
    ///
    /// The actions must be those of one store. Otherwise the dispatch fails.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - version: The version of the state on which the action is based.
    /// - Returns: A handle, as that of a conditional dispatch to a store.
    @discardableResult
    public func dispatch(
        _ action: State.Action, ifUnchangedSince version: StoreVersion
    ) -> DispatchHandle {
        switch destination {
        case .store:
            with(StoreCore<State>.self) { $0.dispatch(action, ifUnchangedSince: version) }
        case .all: DispatchHandle(.failed(.conditionOfMany(State.self)))
        case .elsewhere:
            with(RouteOnly<State>.self) { $0.conditional(on: version).dispatch(action) }
        }
    }
}

extension StoreCore {
    /// The epoch is read first. So it may be too old for the number, which then fails a condition, but never too new.
    var version: StoreVersion {
        let epoch = Epoch(lastEpoch.load(ordering: .acquiring))
        return StoreVersion(sequence: position, epoch: epoch)
    }

    fileprivate func dispatch(
        _ action: S.Action, ifUnchangedSince version: StoreVersion
    ) -> DispatchHandle {
        guard let route = currentRoute else {
            let isClosed = control.withLock { $0.machine.isClosed }
            return DispatchHandle(.failed(isClosed ? .storeClosed(S.self) : .notReplicated(S.self)))
        }
        return RouteOnly(route: route.route, scope: scope, core: self).conditional(on: version)
            .dispatch(action)
    }
}

extension RouteOnly {
    fileprivate func conditional(on version: StoreVersion) -> RouteOnly {
        RouteOnly(route: route.conditional(on: version), scope: scope, core: core)
    }
}

extension ActionRoute {
    /// Actions that this route does not take fail all the same.
    package func conditional(on version: StoreVersion) -> any ActionRoute<S> { self }
}

extension DispatchError {
    /// A condition on a store that no log orders.
    fileprivate static func notReplicated<S: State>(_ state: S.Type) -> DispatchError {
        DispatchError(
            code: .rejected,
            message: """
                No node replicates this store of \(state.title), so there is no sequencer that could judge the condition. \
                Open the store by a node, or dispatch without a condition.
                """)
    }

    /// A condition on all stores of a state.
    fileprivate static func conditionOfMany<S: State>(_ state: S.Type) -> DispatchError {
        DispatchError(
            code: .rejected,
            message: """
                A condition is about one store, and this dispatch is to all stores of \(state.title). Dispatch to one store.
                """)
    }
}
