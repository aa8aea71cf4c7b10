import Synchronization

/// The middleware of one scope, in the order of registration.
final class MiddlewareTable: Sendable {
    private struct Entry {
        let token: Int
        let middleware: any Middleware
        /// The one store that it is for; nil for all.
        let lane: ObjectIdentifier?
    }

    private struct Content {
        var entries: [Entry] = [] {
            didSet {
                isForAll = entries.allSatisfy { $0.lane == nil }
                all = entries.map(\.middleware)
            }
        }
        /// All middleware, and whether none of it is for one store only. *Use*: no list is made anew for
        /// each dispatch and each commit.
        private(set) var all: [any Middleware] = []
        private(set) var isForAll = true
        var tokenCount = 0
    }

    private let content = Mutex(Content())
    private let dispatchCount = Atomic<UInt64>(0)
    /// Whether there is any, looked at before each dispatch and each commit.
    private let isEmptyFlag = Atomic(true)

    @inline(__always)
    var isEmpty: Bool { isEmptyFlag.load(ordering: .relaxed) }

    func register(_ middleware: any Middleware, for lane: Lane?) -> AnyDisposable {
        let token = content.withLock { content in
            content.tokenCount += 1
            content.entries.append(
                Entry(
                    token: content.tokenCount, middleware: middleware,
                    lane: lane.map { ObjectIdentifier($0) }))
            isEmptyFlag.store(false, ordering: .relaxed)
            return content.tokenCount
        }
        return AnyDisposable { [weak self] in self?.remove(token) }
    }

    private func remove(_ token: Int) {
        // Let go outside the lock: it is the user's.
        _ = content.withLock { content in
            let place = content.entries.firstIndex { $0.token == token }
            let removed = place.map { content.entries.remove(at: $0) }
            isEmptyFlag.store(content.entries.isEmpty, ordering: .relaxed)
            return removed
        }
    }

    /// The middleware that observes a store, or, with nil, dispatches to all stores.
    private func concerned(by lane: Lane?) -> [any Middleware] {
        content.withLock { content in
            if content.isForAll { return content.all }
            let identity = lane.map { ObjectIdentifier($0) }
            return content.entries.compactMap { entry in
                entry.lane == nil || entry.lane == identity ? entry.middleware : nil
            }
        }
    }

    // MARK: Telling

    /// A dispatch under way, as the middleware left it.
    struct Passing<S: State> {
        let dispatch: DispatchedAction<S>
        let ticket: DispatchTicket
        /// Who saw it. They are notified of its end, also where their registration has ended by then, as
        /// with a store that was released.
        fileprivate let witnesses: [any Middleware]
    }

    /// Shows a dispatch to the middleware.
    ///
    /// - Parameters:
    ///   - action: What is dispatched.
    ///   - core: The store that it is for; nil for all of the state.
    ///   - label: What the dispatcher said of it.
    /// - Returns: The dispatch as the middleware left it; nil if it was stopped. Those who saw it have been
    ///   notified then.
    func pass<S: State>(
        _ action: S.Action, to core: StoreCore<S>?, label: DispatchLabel?
    ) -> Passing<S>? {
        let number = dispatchCount.add(1, ordering: .relaxed).newValue
        var dispatch = DispatchedAction<S>(
            id: DispatchID(number), action: action, store: core.map { StoreIdentity($0) },
            label: label)
        let witnesses = concerned(by: core)
        for (index, middleware) in witnesses.enumerated() {
            switch middleware.willDispatch(dispatch) {
            case .pass: break
            case .replace(let other): dispatch.action = other
            case .stop:
                for witness in witnesses[...index] {
                    witness.didDispatch(dispatch, failure: .intercepted)
                }
                return nil
            }
        }
        return Passing(
            dispatch: dispatch,
            ticket: DispatchTicket(id: dispatch.id, label: label, lock: FlowLock.held),
            witnesses: witnesses)
    }

    /// Tells that a dispatch has ended.
    func end<S: State>(_ passing: Passing<S>, _ outcome: Outcome) {
        var failure: DispatchError?
        if case .failed(let error) = outcome { failure = error }
        for middleware in passing.witnesses {
            middleware.didDispatch(passing.dispatch, failure: failure)
        }
    }

    /// Tells of a commit, before and after.
    func watch<S: State>(
        _ action: S.Action, of core: StoreCore<S>, _ ticket: DispatchTicket?,
        _ context: ActionContext, in state: S, _ body: () throws -> Void
    ) throws {
        let commit = CommittedAction<S>(
            id: ticket?.id, action: action, context: context, store: StoreIdentity(core),
            label: ticket?.label)
        let middleware = concerned(by: core)
        for middleware in middleware { middleware.willCommit(commit) }
        do {
            try body()
        } catch {
            for middleware in middleware { middleware.didCommit(commit, refusal: error) }
            throw error
        }
        for middleware in middleware { middleware.didCommit(commit, refusal: nil) }
        for change in (state as? any ChangeKeeping)?.takeChanges() ?? [] {
            for middleware in middleware { middleware.didChange(commit, change) }
        }
    }

    /// Notifies all middleware that observes a store.
    func tell(of lane: Lane, _ body: (any Middleware) -> Void) {
        for middleware in concerned(by: lane) { body(middleware) }
    }
}

/// A state that knows what the last commit did in detail. Touched in its store's lane.
protocol ChangeKeeping: AnyObject {
    /// What the last commit did; it is forgotten with that.
    func takeChanges() -> [StorageChange]
}
