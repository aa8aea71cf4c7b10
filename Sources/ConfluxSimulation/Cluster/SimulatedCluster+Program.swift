import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// The programs that run in the nodes' processes.
extension SimulatedCluster {
    func dispatch(_ node: SimulatedNode) throws(Violation) {
        defer {
            schedule(
                .dispatch(process: node.process),
                after: random.duration(
                    around: isHostile
                        ? plan.dispatchEvery
                        : max(
                            plan.dispatchEvery,
                            .milliseconds(100) + plan.latency.upperBound * 12)))
        }
        guard !node.isLeaving, isBusy else { return }
        guard node.kind == .worker else {
            try dispatchAndLeave(node)
            return
        }
        askSkips(node)
        try tendVersions(node)
        guard nodes[node.process] != nil, !node.isLeaving else { return }
        guard node.opening.isEmpty else { return }
        let burst = isHostile && random.chance(0.1) ? random.int(in: 2...40) : 1
        for _ in 0..<burst { dispatchOne(node) }
        if !driven(on: node).isEmpty, random.chance(0.15) { try transact(node) }
        if !driven(on: node).isEmpty, random.chance(0.2) { request(node) }
        if random.chance(0.05) { ask(node) }
        if random.chance(0.1) { askEffect(node) }
        if random.chance(0.05) { askBarrier(node) }
        if random.chance(0.02) { awaitReceipt(node) }
        if random.chance(0.1) { try withdraw(node) }
        try turn(node)
    }

    /// A program that only dispatches sends one or a few actions, and leaves.
    private func dispatchAndLeave(_ node: SimulatedNode) throws(Violation) {
        let burst = isHostile && random.chance(0.3) ? random.int(in: 2...8) : 1
        for _ in 0..<burst { dispatchOne(node) }
        if random.chance(0.1) { try withdraw(node) }
        if random.chance(0.7) {
            node.isLeaving = true
            schedule(.giveUpLeaving(process: node.process), after: .seconds(5))
        }
        try turn(node)
    }

    /// A program that wants to end waits for a while until everything has its outcome.
    func finishLeaving(_ process: Int, isForced: Bool) throws(Violation) {
        guard let node = nodes[process], node.isLeaving, !node.isPaused else { return }
        guard isForced || node.isSettled else { return }
        if !isForced, try !sayLeaving(node) { return }
        try handle(.leave, node)
    }

    /// The program withdraws some of what it dispatched.
    private func withdraw(_ node: SimulatedNode) throws(Violation) {
        let open = node.pending + node.unplaced
        guard !open.isEmpty else { return }
        for _ in 0..<random.int(in: 1...3) {
            let record = random.pick(open)
            record.isWithdrawalAsked = true
            record.handle.requestWithdrawal()
        }
        let withdrawals = node.tells.withdrawals.withLock { exchange(&$0, with: []) }
        var counters = RangeSet<UInt64>()
        for (index, block) in withdrawals {
            if let counter = node.sent.counter(of: index, in: block) {
                counters.insert(contentsOf: counter..<counter + 1)
            }
        }
        if !counters.isEmpty {
            marks.hit(.withdrawalAsked)
            try handle(.withdraw(Array(counters.ranges)), node)
        }
    }

    private func dispatchOne(_ node: SimulatedNode) {
        let place = SimulatedState.Place(process: node.process, index: node.dispatchCount)
        let handle: DispatchHandle
        var condition: DispatchCondition?
        let isBad = strikes(plan.badAction)
        if isBad {
            handle = dispatchBadly(node)
        } else if node.kind == .dispatcher {
            let states = node.states.filter(\.isDriven)
            guard !states.isEmpty else { return }
            let state = random.pick(states)
            let store = random.chance(0.7) ? random.pick(state.stores) : nil
            handle = state.submit(store, node.outbox, place, &random)
        } else if case let stores = driven(on: node), !stores.isEmpty, random.chance(0.7) {
            let store = random.pick(stores)
            if random.chance(0.2) { condition = look(at: store, on: node) }
            handle = node.scope.run { store.dispatch(place, condition?.version, &random) }
        } else if case let bridges = node.bridges.filter({ isDriven($0.name) }), !bridges.isEmpty {
            handle = node.scope.run { random.pick(bridges).dispatch(place, &random) }
        } else {
            return
        }
        let record = DispatchRecord(
            process: node.process, index: node.dispatchCount, handle: handle)
        record.isBad = isBad
        record.condition = condition
        node.dispatchCount += 1
        if let outcome = handle.outcome {
            // It was never sent: the outbox is full, or the action is too large.
            if case .failed(let error) = outcome, error.code == .outboxFull {
                marks.hit(.outboxFull)
            }
            record.outcome = outcome
        } else {
            node.unplaced.append(record)
        }
    }

    /// Whether the simulator dispatches actions to a state. Otherwise only programs do.
    func isDriven(_ name: Name) -> Bool {
        states.contains { $0.name == name && $0.isDriven }
    }

    /// The stores of a process to which the simulator dispatches.
    func driven(on node: SimulatedNode) -> [any SimulatedStore] {
        states.allSatisfy(\.isDriven)
            ? node.stores : node.stores.filter { isDriven($0.name.state) }
    }

    /// The program looks at a store, and dispatches on condition that it stays as it is; or that it is still as it was.
    private func look(at store: any SimulatedStore, on node: SimulatedNode) -> DispatchCondition? {
        if let former = node.looks[store.name], random.chance(0.3) { return former }
        let version = store.version
        guard version.sequence > .zero else { return nil }
        var condition = DispatchCondition(store: store.name, version: version)
        // The state of a store with an executor of its own may be newer than its version.
        if !store.isLate, !node.spoilt.contains(store.name) {
            condition.seen = (Digest(of: store.encoded), store.schemaVersion)
        }
        if node.looks[store.name] == nil || random.chance(0.3) {
            node.looks[store.name] = condition
        }
        return condition
    }

    private func dispatchBadly(_ node: SimulatedNode) -> DispatchHandle {
        // A target that nobody hosts, or a version with a flipped bit.
        let row =
            random.chance(0.5)
            ? BatchTarget(
                target: Target(random.pick(["nowhere/*", "nowhere/7"])) ?? .state(.shared),
                schemaVersion: 1, coding: .json)
            : BatchTarget(
                target: .state(random.pick(states).name), schemaVersion: 1 << 30 | 1, coding: .json)
        return node.outbox.submit(Outbox.Destination(row), Array("{}".utf8), mayWait: false)
    }

    private func ask(_ node: SimulatedNode) {
        guard let name = states.flatMap(\.stores).first else { return }
        let body: Question.Body =
            random.chance(0.5)
            ? .status
            : .observe(name, node: random.chance(0.5) ? Name("node-0") : nil, after: .zero)
        let question = Question(
            number: takeNumber(), patience: random.duration(in: .milliseconds(5)...(.seconds(2))),
            body: body)
        ask(question, node)
    }
}
