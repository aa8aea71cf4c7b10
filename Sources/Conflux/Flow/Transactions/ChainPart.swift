import ConfluxVocabulary

/// One store's part of a chain, whatever its state.
///
/// Its transaction's mutex guards it until the chain is resolved. After that the resolving thread
/// uses it, and then the thread on which the lanes meet.
protocol ChainPart: DispatchPart {
    var lane: Lane { get }
    /// Where the lanes meet. Set once, before places are kept.
    var meeting: Rendezvous? { get set }

    /// Shows the actions to the middleware.
    ///
    /// - Returns: false if one was stopped.
    func pass(_ label: DispatchLabel) -> Bool
    /// Tells the middleware how the transaction ended.
    func end(_ outcome: Outcome)

    // The functions below are called where the lanes meet, in this order.

    /// Applies the actions to a copy.
    ///
    /// - Returns: The first action's receipt; nil if there is none.
    /// - Throws: Why an action is refused. Then nothing has changed.
    func prepare(at timestamp: Timestamp) throws -> Receipt?
    /// Notifies the middleware of the commits to come.
    func tellBefore()
    /// Puts the copy into the state.
    func exchange()
    /// Notifies the observers and the middleware of the commits. This happens on the store's
    /// executor, before anything else that the store does.
    ///
    /// - Parameter completion: Called once, after that.
    func tellAfter(_ completion: @escaping @Sendable () -> Void)
}

// Sendable: see the protocol.
final class StoreChainPart<S: ValueHolder>: ChainPart, @unchecked Sendable {
    /// Keeps the store alive, so that it isn't released where the lanes meet.
    private let store: Store<S>
    private let value: ValueState<S.Value, S.Action>
    var meeting: Rendezvous?
    /// As the middleware has left them, once it has seen them.
    var actions: [S.Action] = []
    private var passing: [MiddlewareTable.Passing<S>] = []
    /// The value to come, or, after the exchange, the former one; nil if nothing changes.
    private var other: S.Value?
    private var commits: [(commit: CommittedAction<S>, changes: [StorageChange])] = []

    init(_ store: Store<S>) {
        self.store = store
        value = store.computed.state._state
    }

    private var core: StoreCore<S> { store.core }
    private var middleware: MiddlewareTable { core.scope.middleware }
    var lane: Lane { core }
    var channel: any StateChannel { core.scope.channel(of: S.self) }

    func expect(_ live: [Lane]) -> [Lane] { [core] }

    func job(for lane: Lane, at index: Int) -> LaneJob {
        meeting.map { .hold($0) } ?? .work { _ in }
    }

    func passOver(_ lane: Lane, at index: Int, _ placement: Lane.Machine.Placement) {
        meeting?.abandon(lane)
    }

    func go(_ handle: DispatchHandle?) {}

    func pass(_ label: DispatchLabel) -> Bool {
        guard core.isWitnessed else { return true }
        for (index, action) in actions.enumerated() {
            guard let passed = middleware.pass(action, to: core, label: label) else { return false }
            actions[index] = passed.dispatch.action
            passing.append(passed)
        }
        return true
    }

    func end(_ outcome: Outcome) {
        for passed in passing { middleware.end(passed, outcome) }
    }

    func prepare(at timestamp: Timestamp) throws -> Receipt? {
        var (copy, isChanged) = (value.content, false)
        let contexts = core.contexts(count: actions.count, at: timestamp)
        commits = try zip(actions, contexts).enumerated().map { index, step in
            let (action, context) = step
            let changes = try value.reduce(&copy, action, context)
            isChanged = isChanged || changes != nil
            // Middleware may have been registered after the actions passed it.
            let ticket = passing.indices.contains(index) ? passing[index].ticket : nil
            let commit = CommittedAction(
                id: ticket?.id, action: action, context: context, core: core, label: ticket?.label,
                result: core.isWitnessed ? copy : nil)
            return (commit, changes ?? [])
        }
        if isChanged { other = copy }
        return contexts.first.map {
            Receipt(log: nil, epoch: .none, sequence: $0.sequence, timestamp: $0.timestamp)
        }
    }

    func tellBefore() {
        for (commit, _) in commits {
            var commit = commit
            commit.result = nil
            middleware.tell(of: core) { $0.willCommit(commit) }
        }
    }

    func exchange() {
        core.count(commits.count)
        if var other {
            value.exchange(&other)
            // The former value is released later, on the store's executor.
            self.other = other
        }
    }

    func tellAfter(_ completion: @escaping @Sendable () -> Void) {
        core.putFirst { [self] in
            if other != nil { value.tell() }
            other = nil
            for (commit, changes) in commits {
                for change in changes {
                    middleware.tell(of: core) { $0.didChange(commit, change) }
                }
                middleware.tell(of: core) { $0.didCommit(commit, refusal: nil) }
            }
            commits = []
            completion()
        }
    }
}
