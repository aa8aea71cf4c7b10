/// What becomes of an action that is being dispatched.
public enum Passage<Action> {
    /// It is dispatched as it is.
    case pass
    /// This one is dispatched instead.
    case replace(Action)
    /// It ends here: no store hears of it. Its ``DispatchHandle/receipt(within:)`` throws
    /// ``DispatchError/Code/intercepted``.
    case stop
}

extension Passage: Sendable where Action: Sendable {}

/// Observes dispatched and committed actions, and may replace or stop a dispatched one.
///
/// ```swift
/// struct Printer: Middleware {
///     func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
///         print("\(dispatch.id): \(dispatch.action)")
///         return .pass
///     }
/// }
/// let registration = Scope.current.use(Printer())
/// ```
///
/// Middleware sees an action twice. When the action is *dispatched*, the middleware of its scope sees
/// it in the order of registration. Each may replace or stop it, and the next one sees the result.
/// When a store *commits* the action, everything is settled, and middleware only observes: a replica
/// that did something else would differ from the others. A global action of another process is seen
/// only there.
///
/// Every function may dispatch. Actions that `willDispatch` dispatches come before the action itself,
/// and those of the other functions after it. No lock is held while one runs. Functions about a
/// dispatch run on the thread that dispatches, those about a commit on the one that commits, several
/// at the same time where several threads do so.
///
/// For actions of one type, ``Interceptor`` is shorter.
public protocol Middleware: Sendable {
    /// An action is being dispatched. Lets it pass unless implemented.
    ///
    /// - Parameter dispatch: The action, as the middleware before has left it.
    /// - Returns: What becomes of it.
    func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action>

    /// A dispatch has ended: all stores here have committed the action, or it failed, for example
    /// because middleware stopped it. Called once for each dispatch that this middleware saw begin,
    /// even if its registration has ended meanwhile.
    ///
    /// - Parameters:
    ///   - dispatch: The action as the middleware left it.
    ///   - result: The receipt, which has the place in the log if a node replicates the store; or why there is
    ///     none.
    func didDispatch<S: State>(
        _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>)

    /// A store is about to commit an action.
    func willCommit<S: State>(_ commit: CommittedAction<S>)

    /// A store has committed an action, or refused it.
    ///
    /// - Parameters:
    ///   - commit: The action.
    ///   - refusal: Why the state's check refused it; nil if it did not.
    func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?)

    /// A storage's commit has changed a part of its value, or replaced the whole. Called for each of its changes,
    /// in order, when the commit is made and observed, and before ``didCommit(_:refusal:)``.
    ///
    /// - Parameters:
    ///   - commit: The commit.
    ///   - change: What it did.
    func didChange<S: State>(_ commit: CommittedAction<S>, _ change: StorageChange)

    /// An activity is being emitted.
    ///
    /// - Parameters:
    ///   - activity: What happened.
    ///   - store: The store.
    ///   - label: Where it was emitted.
    func didEmit(_ activity: any Sendable, from store: StoreIdentity, label: DispatchLabel)

    /// A function is about to be run for a store.
    ///
    /// - Parameters:
    ///   - label: What the caller said of it.
    ///   - store: The store.
    func willPerform(_ label: DispatchLabel, for store: StoreIdentity)
}

extension Middleware {
    /// Lets the action pass.
    public func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
        .pass
    }

    /// Does nothing.
    public func didDispatch<S: State>(
        _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>
    ) {}

    /// Does nothing.
    public func willCommit<S: State>(_ commit: CommittedAction<S>) {}

    /// Does nothing.
    public func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {}

    /// Does nothing.
    public func didChange<S: State>(_ commit: CommittedAction<S>, _ change: StorageChange) {}

    /// Does nothing.
    public func didEmit(
        _ activity: any Sendable, from store: StoreIdentity, label: DispatchLabel
    ) {}

    /// Does nothing.
    public func willPerform(_ label: DispatchLabel, for store: StoreIdentity) {}
}

extension Scope {
    /// Registers middleware for every store of this scope, after the middleware registered before.
    ///
    /// - Parameter middleware: Kept until the registration ends.
    /// - Returns: A disposable that ends the registration. Releasing it ends nothing.
    @discardableResult
    public func use(_ middleware: some Middleware) -> any Disposable & Sendable {
        self.middleware.register(middleware, for: nil)
    }

    /// Registers middleware for one store. It observes actions dispatched to this store only, and all
    /// actions that the store commits. It sees global actions and events only when the store commits them.
    /// To stop or replace those, register it for the scope (``use(_:)``).
    ///
    /// - Parameters:
    ///   - middleware: Kept until the registration ends, or the store is released.
    ///   - store: A store of this scope. A store of another scope ends the program with a message.
    ///     It is not kept.
    /// - Returns: A disposable that ends the registration. Releasing it ends nothing.
    @discardableResult
    public func use<S: State>(
        _ middleware: some Middleware, for store: Store<S>
    ) -> any Disposable & Sendable {
        precondition(store.core.scope === self, "\(S.self)'s store belongs to another scope")
        return store.core.ending(self.middleware.register(middleware, for: store.core))
    }
}
