import ConfluxVocabulary
import Synchronization

/// One store's part of a transaction, whatever its state.
protocol Participant: AnyObject, Sendable {
    var lane: Lane { get }
    var channel: any StateChannel { get }

    /// Shows the actions to the middleware.
    ///
    /// - Returns: false if one was stopped.
    func pass(_ label: DispatchLabel) -> Bool
    /// Tells the middleware how the transaction ended.
    func end(_ outcome: Outcome)

    /// Keeps a place for a hold in the store's line.
    ///
    /// - Returns: Whether there is one.
    func place(
        _ meeting: any LaneHold, behind hold: (any LaneHold)?, in places: inout Reservation,
        _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Bool
    /// Whether the store is as it was read, or was not read. Called on any thread.
    var isAsRead: Bool { get }

    // The functions below are called where the lanes meet, in this order.

    /// Applies the actions to a copy.
    ///
    /// - Returns: The first action's receipt; nil if there is none.
    /// - Throws: Why an action is refused.
    func prepare(at timestamp: Timestamp) throws -> Receipt?
    /// Discards what was prepared.
    func forget()
    /// Notifies the middleware of the commits to come.
    func tellBefore()
    /// Puts the copy into the state, and runs a function before others can read it.
    func exchange(then next: () -> Void)
    /// Notifies the observers and the middleware of the commits. This happens on the store's
    /// executor, before anything else that the store does.
    ///
    /// - Parameter completion: Called once, after that.
    func tellAfter(_ completion: @escaping @Sendable () -> Void)
}

// Sendable: what changes is in a mutex, or used only where the lanes meet.
final class StoreParticipant<S: ValueHolder>: Participant, @unchecked Sendable {
    private struct Plan {
        var actions: [S.Action] = []
        /// The value after the first `count` of the actions; nil until the transaction reads it.
        var working: (value: S.Value, count: Int)?
        /// The value's version at that reading.
        var version: UInt64?
        /// The actions as the middleware left them.
        var passing: [MiddlewareTable.Passing<S>] = []
    }

    /// Keeps the store alive, so that it isn't released where the lanes meet.
    private let store: Store<S>
    private let value: ValueState<S.Value, S.Action>
    private let plan = Mutex(SendableBox(Plan()))
    private var prepared: S.Value?
    private var contexts: [ActionContext] = []
    /// What each action did in detail.
    private var changes: [[StorageChange]] = []
    /// Whether any action changed anything.
    private var isChanged = false
    /// *Use*: the value after each action, if there is middleware.
    private var results: [S.Value] = []

    init(_ store: Store<S>) {
        self.store = store
        value = store.computed.state._state
    }

    private var core: StoreCore<S> { store.core }
    var lane: Lane { core }
    var channel: any StateChannel { core.scope.channel(of: S.self) }
    var present: S.Value { value.content }

    /// The value after the actions so far.
    func read() throws -> S.Value {
        let plan = self.plan.withLock { $0 }.content
        let (actions, working) = (plan.actions, plan.working)
        let version: UInt64?
        var present: S.Value
        if let working {
            (present, version) = (working.value, nil)
        } else {
            let (value, number) = value.readVersion { $0 }
            (present, version) = (value, number)
        }
        for action in actions.dropFirst(working?.count ?? 0) {
            try reduce(&present, action, ActionContext(timestamp: WallClock.now))
        }
        let read = (value: present, count: actions.count)
        let result: S.Value? = self.plan.withLock { plan in
            if version != nil, let first = plan.content.working {
                // Another task has read meanwhile, perhaps another value. Its reading counts.
                return first.count >= read.count ? first.value : nil
            }
            if let version { plan.content.version = version }
            // Another task may have added and read more actions by now. That reading stays.
            if read.count >= plan.content.working?.count ?? 0 { plan.content.working = read }
            return read.value
        }
        return try result ?? self.read()
    }

    func add(_ action: S.Action) throws {
        // Actions may be committed on another thread: that is the contract of `State.Action`.
        nonisolated(unsafe) let action = action
        let isRead = plan.withLock { plan in
            plan.content.actions.append(action)
            return plan.content.working != nil
        }
        if isRead { _ = try read() }
    }

    private var actions: [S.Action] {
        plan.withLock { $0 }.content.actions
    }

    @discardableResult
    private func reduce(
        _ value: inout S.Value, _ action: S.Action, _ context: ActionContext
    ) throws -> [StorageChange]? {
        try self.value.reduce(&value, action, context)
    }

    func pass(_ label: DispatchLabel) -> Bool {
        guard !core.scope.middleware.isEmpty else { return true }
        var passing: [MiddlewareTable.Passing<S>] = []
        var isStopped = false
        for action in actions where !isStopped {
            if let passed = core.scope.middleware.pass(action, to: core, label: label) {
                passing.append(passed)
            } else {
                isStopped = true
            }
        }
        // Actions may be committed on another thread: that is the contract of `State.Action`.
        nonisolated(unsafe) let passed = passing
        plan.withLock { plan in
            plan.content.passing = passed
            plan.content.actions = passed.map(\.dispatch.action)
        }
        return !isStopped
    }

    private var passing: [MiddlewareTable.Passing<S>] {
        plan.withLock { $0 }.content.passing
    }

    func end(_ outcome: Outcome) {
        for passed in passing { core.scope.middleware.end(passed, outcome) }
    }

    func place(
        _ meeting: any LaneHold, behind hold: (any LaneHold)?, in places: inout Reservation,
        _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Bool {
        places.place(.hold(meeting), in: core, behind: hold, mark) == .kept
    }

    var isAsRead: Bool {
        guard let version = plan.withLock({ $0.content.version }) else { return true }
        return value.version == version
    }

    func prepare(at timestamp: Timestamp) throws -> Receipt? {
        let actions = actions
        let isWatched = !core.scope.middleware.isEmpty
        contexts = core.contexts(count: actions.count, at: timestamp)
        guard let first = contexts.first else { return nil }
        var copy = present
        for (action, context) in zip(actions, contexts) {
            let change = try reduce(&copy, action, context)
            isChanged = isChanged || change != nil
            changes.append(change ?? [])
            if isWatched { results.append(copy) }
        }
        prepared = copy
        return Receipt(
            log: nil, epoch: .none, sequence: first.sequence, timestamp: first.timestamp)
    }

    func forget() {
        (prepared, contexts, changes, results, isChanged) = (nil, [], [], [], false)
    }

    func tellBefore() {
        for commit in commits(done: false) {
            core.scope.middleware.tell(of: core) { $0.willCommit(commit) }
        }
    }

    func exchange(then next: () -> Void) {
        guard var prepared else { return next() }
        core.count(contexts.count)
        guard isChanged else { return next() }
        value.exchange(&prepared, then: next)
        // The old value is released later, since the locks of other stores are held here.
        self.prepared = prepared
    }

    func tellAfter(_ completion: @escaping @Sendable () -> Void) {
        guard !contexts.isEmpty else { return completion() }
        core.putFirst { [self] in
            tell()
            completion()
        }
    }

    private func tell() {
        if isChanged { value.tell() }
        for (commit, changes) in zip(commits(done: true), changes) {
            for change in changes {
                core.scope.middleware.tell(of: core) { $0.didChange(commit, change) }
            }
            core.scope.middleware.tell(of: core) { $0.didCommit(commit, refusal: nil) }
        }
        forget()
    }

    private func commits(done isDone: Bool) -> [CommittedAction<S>] {
        let (actions, passing) = (actions, passing)
        return contexts.indices.map { index in
            // Middleware may have been registered after the actions passed it.
            let ticket = passing.indices.contains(index) ? passing[index].ticket : nil
            return CommittedAction(
                id: ticket?.id, action: actions[index], context: contexts[index], core: core,
                label: ticket?.label,
                result: isDone && results.indices.contains(index) ? results[index] : nil)
        }
    }
}

/// Carries a value that holds actions. They may be committed on another thread: that is the
/// contract of `State.Action`.
struct SendableBox<Content>: @unchecked Sendable {
    var content: Content

    init(_ content: Content) {
        self.content = content
    }
}
