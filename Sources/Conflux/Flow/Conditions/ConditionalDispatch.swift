import ConfluxVocabulary

/// Dispatches that the sequencer takes only if a store has not changed.
///
/// ```swift
/// let (price, version) = await hall.read { $0.price }
/// if price == 20 {
///     try await hall.dispatch(.reprice(30), ifUnchangedSince: version).receipt()
/// }
/// ```
extension Store where State: ReplicatedState {
    /// The version of what this store has applied; zero before a node replicates it.
    ///
    /// The number rises with every entry that concerns the store, even one that is refused. While a store is applying
    /// entries, its state may be newer than its version. So what you read after the version has not changed since, unless
    /// the store begins anew in between, for example because its state was wrong. ``read(_:)`` rules that out, too.
    public var version: StoreVersion { core.version }

    /// Reads the state together with its version, between two actions.
    ///
    /// - Parameter body: Reads what is needed. Called once, where the store applies its actions; it must not wait.
    /// - Returns: What the function returned, and the version of the state that it saw.
    public func read<Value: Sendable>(
        _ body: @escaping @Sendable (Computed<State>) -> Value
    ) async -> (value: Value, version: StoreVersion) {
        await withCheckedContinuation { continuation in
            core.inspect { [self] _, _ in
                continuation.resume(returning: (body(computed), core.version))
            }
        }
    }

    /// Dispatches an action to this store, on condition that the store has not changed.
    ///
    /// The sequencer compares: it takes the action only if no entry behind the version concerns the store. It is as safe
    /// to try again as any dispatch, and of several with the same version, one is taken.
    ///
    /// The store must be replicated. Otherwise the dispatch fails.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - version: The version of the state on which the action is based, as ``read(_:)`` returns it.
    /// - Returns: A handle to wait for the action's receipt with. If the store has changed, the receipt throws a
    ///   ``DispatchError`` with the code ``DispatchError/Code/conflict``, and the action never takes effect. This node may
    ///   not have applied the change yet: await the node's `barrier()`, read again, and decide anew.
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
        case .elsewhere: dispatch(action) { $0.conditional(on: version) }
        }
    }

    /// The route that the actions take; nil if they take none.
    package var orderedRoute: (any ActionRoute<State>)? {
        switch destination {
        case .store: with(StoreCore<State>.self) { $0.orderedRoute }
        case .all: with(GlobalChannel<State>.self) { $0.currentRoute?.route }
        case .elsewhere: with(RouteOnly<State>.self) { $0.route }
        }
    }

    /// Dispatches an action by another route than its own.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - change: Returns the other route.
    /// - Returns: The handle to wait for the outcome with.
    package func dispatch(
        _ action: State.Action, by change: (any ActionRoute<State>) -> any ActionRoute<State>
    ) -> DispatchHandle {
        switch destination {
        case .store: with(StoreCore<State>.self) { $0.dispatch(action, by: change) }
        case .all:
            with(GlobalChannel<State>.self) { channel in
                guard let route = channel.currentRoute else {
                    return DispatchHandle(.failed(.notReplicated(State.self)))
                }
                return RouteOnly(route: change(route.route), scope: channel.scope).dispatch(action)
            }
        case .elsewhere:
            with(RouteOnly<State>.self) { only in
                RouteOnly(route: change(only.route), scope: only.scope, core: only.core)
                    .dispatch(action)
            }
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
        dispatch(action) { $0.conditional(on: version) }
    }

    /// Dispatches an action by another route than the store's own.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - change: Returns the other route.
    /// - Returns: The handle to wait for the outcome with.
    package func dispatch(
        _ action: S.Action, by change: (any ActionRoute<S>) -> any ActionRoute<S>
    ) -> DispatchHandle {
        guard let route = currentRoute else { return DispatchHandle(.failed(withoutLog)) }
        return RouteOnly(route: change(route.route), scope: scope, core: self).dispatch(action)
    }

    /// Why there is no log that could judge a condition, or keep a timer.
    private var withoutLog: DispatchError {
        control.withLock { $0.machine.isClosed } ? .storeClosed(S.self) : .notReplicated(S.self)
    }
}

extension DispatchError {
    /// A condition on a store that no log orders, or a timer for it.
    package static func notReplicated<S: State>(_ state: S.Type) -> DispatchError {
        DispatchError(
            code: .rejected,
            message: """
                No node replicates this store of \(state.title), so there is no sequencer that could judge a condition or \
                keep a timer. Open the store by a node, or dispatch without a condition, and at once.
                """)
    }

    /// A condition on all stores of a state.
    package static func conditionOfMany<S: State>(_ state: S.Type) -> DispatchError {
        DispatchError(
            code: .rejected,
            message: """
                A condition is about one store, and this dispatch is to all stores of \(state.title). Dispatch to one store.
                """)
    }
}
