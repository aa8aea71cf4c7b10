import Synchronization

/// The middleware of one scope, in the order of registration.
final class MiddlewareTable: Sendable {
    private struct Entry {
        let token: Int
        let middleware: any Middleware
        /// The one store that it is for; nil for all.
        let lane: ObjectIdentifier?
    }

    /// The middleware that observes one store, or the dispatches to all stores.
    struct Observers {
        /// The observers of dispatches, in the order of registration.
        fileprivate(set) var dispatches: [any Middleware] = []
        /// The observers of commits, activities and functions.
        fileprivate(set) var commits: [any Middleware] = []
        /// Those of `dispatches` that handle only some types of actions.
        private var interceptors: [Interceptor] = []

        fileprivate mutating func add(_ middleware: any Middleware) {
            if !(middleware is any CommitObserver) { dispatches.append(middleware) }
            if let interceptor = middleware as? Interceptor {
                interceptors.append(interceptor)
            } else {
                commits.append(middleware)
            }
        }

        /// Whether no observer would do anything about a dispatch of this type.
        func ignoreDispatches<Action>(of type: Action.Type) -> Bool {
            dispatches.count == interceptors.count && !interceptors.contains { $0.handles(type) }
        }
    }

    private struct Content {
        var entries: [Entry] = [] {
            didSet { gather() }
        }
        /// *Use*: kept ready, so that no list is made for each dispatch and each commit.
        private(set) var observers = Observers()
        /// The observers of each store that has middleware of its own.
        private(set) var byLane: [ObjectIdentifier: Observers] = [:]
        var tokenCount = 0

        private mutating func gather() {
            observers = Observers()
            byLane = [:]
            for lane in Set(entries.compactMap(\.lane)) { byLane[lane] = Observers() }
            for entry in entries {
                if let lane = entry.lane {
                    byLane[lane]?.add(entry.middleware)
                } else {
                    observers.add(entry.middleware)
                    for lane in byLane.keys { byLane[lane]?.add(entry.middleware) }
                }
            }
        }

        var hasCommitObservers: Bool {
            !observers.commits.isEmpty || byLane.values.contains { !$0.commits.isEmpty }
        }

        func observers(of lane: Lane?) -> Observers {
            guard let lane, !byLane.isEmpty else { return observers }
            return byLane[ObjectIdentifier(lane)] ?? observers
        }
    }

    private let content = Mutex(Content())
    private let dispatchCount = Atomic<UInt64>(0)
    /// Whether there is no middleware for all stores. Read before each dispatch.
    private let isEmptyFlag = Atomic(true)
    /// Whether there is none at all. Read before each dispatch to all stores of a state.
    private let hasNoneFlag = Atomic(true)
    /// Whether any middleware for all stores observes commits. Read before each commit.
    private let allCommitsFlag = Atomic(false)
    /// Whether any middleware observes commits.
    private let commitsFlag = Atomic(false)

    @inline(__always)
    var isEmpty: Bool { isEmptyFlag.load(ordering: .relaxed) }

    @inline(__always)
    var hasNone: Bool { hasNoneFlag.load(ordering: .relaxed) }

    @inline(__always)
    var observesAllCommits: Bool { allCommitsFlag.load(ordering: .relaxed) }

    var observesCommits: Bool { commitsFlag.load(ordering: .relaxed) }

    func register(_ middleware: any Middleware, for lane: Lane?) -> AnyDisposable {
        lane?.concernCount.add(1, ordering: .relaxed)
        let token = content.withLock { content in
            content.tokenCount += 1
            content.entries.append(
                Entry(
                    token: content.tokenCount, middleware: middleware,
                    lane: lane.map { ObjectIdentifier($0) }))
            setFlags(content)
            return content.tokenCount
        }
        return AnyDisposable { [weak self, weak lane] in
            lane?.concernCount.subtract(1, ordering: .relaxed)
            self?.remove(token)
        }
    }

    private func remove(_ token: Int) {
        // The middleware is released outside the lock: that may run user code.
        _ = content.withLock { content in
            let place = content.entries.firstIndex { $0.token == token }
            let removed = place.map { content.entries.remove(at: $0) }
            setFlags(content)
            return removed
        }
    }

    private func setFlags(_ content: Content) {
        isEmptyFlag.store(content.entries.allSatisfy { $0.lane != nil }, ordering: .relaxed)
        hasNoneFlag.store(content.entries.isEmpty, ordering: .relaxed)
        allCommitsFlag.store(!content.observers.commits.isEmpty, ordering: .relaxed)
        commitsFlag.store(content.hasCommitObservers, ordering: .relaxed)
    }

    /// The middleware that observes a store, or, with nil, dispatches to all stores.
    func observers(of lane: Lane?) -> Observers {
        content.withLock { $0.observers(of: lane) }
    }

    // MARK: Telling

    /// A dispatch under way, as the middleware left it.
    struct Passing<S: State> {
        let dispatch: DispatchedAction<S>
        let ticket: DispatchTicket
        /// The middleware that saw the dispatch. It is notified of the end, even if its
        /// registration has ended by then, for example because its store was released.
        fileprivate let witnesses: [any Middleware]

        fileprivate init(
            _ dispatch: DispatchedAction<S>, _ label: DispatchLabel?, _ witnesses: [any Middleware]
        ) {
            self.dispatch = dispatch
            self.witnesses = witnesses
            ticket = DispatchTicket(id: dispatch.id, label: label, lock: FlowLock.held)
        }

        /// A dispatch that no middleware sees.
        init(unseen action: S.Action, _ label: DispatchLabel?) {
            self.init(DispatchedAction(id: 0, action: action, core: nil, label: label), label, [])
        }
    }

    /// The number of the next dispatch.
    func nextID() -> UInt64 {
        dispatchCount.add(1, ordering: .relaxed).newValue
    }

    /// Shows a dispatch to the middleware.
    ///
    /// - Parameters:
    ///   - action: What is dispatched.
    ///   - core: The store that it is for; nil for all stores of the state.
    ///   - label: The dispatcher's label.
    /// - Returns: The dispatch as the middleware left it; nil if it was stopped. If so, the
    ///   middleware that saw it has been notified of its end.
    func pass<S: State>(
        _ action: S.Action, to core: StoreCore<S>?, label: DispatchLabel?
    ) -> Passing<S>? {
        var dispatch = DispatchedAction<S>(id: nextID(), action: action, core: core, label: label)
        let witnesses = observers(of: core).dispatches
        for (index, middleware) in witnesses.enumerated() {
            switch middleware.willDispatch(dispatch) {
            case .pass: break
            case .replace(let other): dispatch.action = other
            case .stop:
                for witness in witnesses[...index] {
                    witness.didDispatch(dispatch, result: .failure(.intercepted))
                }
                return nil
            }
        }
        return Passing(dispatch, label, witnesses)
    }

    /// Notifies the middleware that a dispatch has ended.
    func end<S: State>(_ passing: Passing<S>, _ outcome: Outcome) {
        for middleware in passing.witnesses {
            middleware.didDispatch(passing.dispatch, result: outcome.result)
        }
    }

    /// Runs the body, which commits an action, and notifies the middleware before and after it.
    func watch<S: State>(
        _ action: S.Action, of core: StoreCore<S>, _ ticket: DispatchTicket?,
        _ context: ActionContext, in state: S, _ body: () throws -> Void
    ) throws {
        let middleware = observers(of: core).commits
        if middleware.isEmpty { return try body() }
        let commit = CommittedAction<S>(
            id: ticket?.id, action: action, context: context, core: core, label: ticket?.label)
        for middleware in middleware { middleware.willCommit(commit) }
        do {
            try body()
        } catch {
            for middleware in middleware { middleware.didCommit(commit, refusal: error) }
            throw error
        }
        for change in (state as? any ChangeKeeping)?.takeChanges() ?? [] {
            for middleware in middleware { middleware.didChange(commit, change) }
        }
        for middleware in middleware { middleware.didCommit(commit, refusal: nil) }
    }

    /// Notifies all middleware that observes a store.
    func tell(of lane: Lane, _ body: (any Middleware) -> Void) {
        for middleware in observers(of: lane).commits { body(middleware) }
    }
}

extension Lane {
    /// Whether there may be middleware that observes the store.
    final var isWitnessed: Bool { isConcerned || !(home?.middleware.isEmpty ?? true) }
}

/// Middleware that observes commits and no dispatches.
protocol CommitObserver: Middleware {}

/// A state that records what its last commit did. Used only in its store's lane.
protocol ChangeKeeping: AnyObject {
    /// Returns what the last commit did, and forgets it.
    func takeChanges() -> [StorageChange]
}
