import Conflux
import ConfluxNode
import ConfluxProtocol

/// Events in stores: opening, freezing, nondeterministic reducers, and entries that crash
/// processes.
extension SimulatedCluster {
    // MARK: Opening and closing (rule 16)

    func bridge(_ state: SimulatedState, on node: SimulatedNode) {
        let bridge = state.bridge(node.scope, node.outbox)
        let registration = bridge.open(
            request: node.takeRequest(), scope: node.scope, payloadBytesMax: plan.payloadBytesMax,
            completion: { [unowned self, unowned node] result in
                guard case .success = result else { return }
                node.bridges.append(bridge)
                // A program that is brought back for a store opens all.
                let isBrought = !isHostile && node.program.release != release
                for store in state.stores
                where random.chance(0.8) || isBrought || node.run != nil {
                    open(store, state, on: node)
                }
            },
            inhabited: { [unowned self, unowned node] in give(.inhabited(state.name), to: node) })
        give(.register(registration), to: node)
    }

    func open(_ name: StoreName, _ state: SimulatedState, on node: SimulatedNode) {
        guard node.store(name) == nil, !node.opening.contains(name) else { return }
        let late = strikes(plan.slowStores) ? node.late : nil
        let store = state.host(name, node.scope, node.outbox, late)
        node.opening.insert(name)
        node.replicas.append(store)
        let registration = store.open(
            request: node.takeRequest(), scope: node.scope, payloadBytesMax: plan.payloadBytesMax,
            policy: node.program.policy,
            completion: { [unowned self, unowned node] result in
                node.opening.remove(name)
                switch result {
                case .success(let life):
                    trace.note(now, "\(node.text) hosts \(name), life \(life)")
                    node.stores.append(store)
                case .failure(let error):
                    trace.note(now, "\(node.text) can't open \(name): \(error)")
                    node.noteEnd(of: store)
                    store.close(in: node.scope)
                    note(unopened: name, error, on: node)
                    if error.code == .storeStopped { noteStop(of: name, on: node) }
                }
            },
            lost: { [unowned self, unowned node, unowned store] error in
                trace.note(now, "\(node.text) hosts \(name) no longer: \(error)")
                node.stores.removeAll { $0 === store }
                node.noteEnd(of: store)
                node.gone.insert(name)
                node.compared[name] = nil
                store.close(in: node.scope)
                if error.code == .storeStopped { noteStop(of: name, on: node) }
                // Some open it again at once, and meet others that do the same.
                if random.chance(0.6) { open(name, state, on: node) }
            })
        give(.register(registration), to: node)
    }

    /// Stops hosting; the store may be opened again.
    func close(_ store: any SimulatedStore, on node: SimulatedNode) {
        node.stores.removeAll { $0 === store }
        node.gone.insert(store.name)
        node.compared[store.name] = nil
        store.close(in: node.scope)
        node.noteClosing(store)
        give(.unregister(.store(store.name)), to: node)
        marks.hit(.closed)
    }

    // MARK: Freezing (rule 21)

    func freeze() throws(Violation) {
        let hosts = nodes.values.filter { !$0.stores.isEmpty && !$0.isPaused }.map(\.process)
        guard let node = pick(hosts).flatMap({ nodes[$0] }) else { return }
        let name = random.pick(node.stores).name
        guard let history = truth.branch.presentLife(name) else { return }
        // Most are soon thawed.
        decide(
            .frozen(name, life: history.life, history.isFrozen ? random.chance(0.1) : true),
            on: node)
        try turn(node)
    }

    // MARK: Nondeterministic reducers (rule 22)

    func spoil() {
        let hosts = nodes.values.filter { !$0.stores.isEmpty }.map(\.process)
        guard let node = pick(hosts).flatMap({ nodes[$0] }) else { return }
        let store = random.pick(node.stores)
        guard let change = states.first(where: { $0.name == store.name.state })?.corrupt,
            let place = node.applier.place(of: store.name), place.hasCaughtUp,
            place.stopped == nil, !store.isLate
        else { return }
        marks.hit(.spoilt)
        trace.note(now, "\(store.name) of \(node.text) is spoilt")
        truth.snapshots.spoil(store.name)
        node.spoilt.insert(store.name)
        node.scope.run { store.corrupt(by: change) }
    }

    // MARK: Entries that crash processes (rule 23)

    /// Chooses an entry that crashes processes.
    func poison() {
        guard disk.last > SequenceNumber(20), let state = states.first else { return }
        let name = random.pick(state.stores)
        guard let history = truth.branch.presentLife(name) else { return }
        let behind = UInt64(random.int(in: 0...10))
        let at = SequenceNumber(disk.last.rawValue - behind)
        guard at > history.life, !deaths.contains(where: { $0.store == name }) else { return }
        marks.hit(.poisoned)
        trace.note(now, "processes die of \(at) in \(name)")
        deaths.append(Death(store: name, life: history.life, log: disk.id, at: at))
        for node in nodes.keys.sorted().compactMap({ nodes[$0] }) where node.kind == .worker {
            if random.chance(0.7) {
                crash(node)
            } else if random.chance(0.5) {
                // It has the entry, and may be paused while somebody skips it.
                pause(node, for: random.duration(in: .seconds(2) ... .seconds(12)))
            }
        }
    }

    /// The crash journal of a process that starts now.
    func drawDeaths() -> [Death] {
        var known = deaths
        // A single process may die of a future entry: while it hosts the store, it stops there.
        if isHostile, plan.poisonEvery != nil, random.chance(0.3), let state = states.first,
            let history = truth.branch.presentLife(random.pick(state.stores)),
            !known.contains(where: { $0.store == history.name })
        {
            let at = disk.last.advanced(by: UInt64(random.int(in: 1...200)))
            marks.hit(.poisoned)
            known.append(
                Death(store: history.name, life: history.life, log: disk.id, at: at))
        }
        return known
    }

    func noteStop(of store: StoreName, on node: SimulatedNode) {
        guard let death = node.deaths.first(where: { $0.store == store }),
            !stuck.contains(death)
        else { return }
        stuck.append(death)
        // A node that has applied the entry may be paused while people look at the stopped stores. Only then
        // can the entry be skipped without that node's knowledge.
        guard isHostile, random.chance(0.5) else { return }
        for other in nodes.keys.sorted().compactMap({ nodes[$0] })
        where other !== node && other.applier.place(of: store) != nil {
            pause(other, for: random.duration(in: .seconds(2) ... .seconds(12)))
        }
    }

    /// People skip the entries at which stores have stopped.
    func askSkips(_ node: SimulatedNode) {
        guard !stuck.isEmpty, random.chance(isHostile ? 0.1 : 0.5),
            !node.stores.isEmpty || !isHostile
        else { return }
        let death = random.pick(stuck)
        guard death.log == disk.id, truth.branch.presentLife(death.store)?.life == death.life,
            !node.waits.values.contains(where: {
                if case .skipped(death.at, _) = $0.goal { true } else { false }
            })
        else { return }
        marks.hit(.skipAsked)
        decide(.skipped(death.at, .store(death.store)), on: node)
    }

    func decide(_ goal: Wait.Goal, on node: SimulatedNode) {
        trace.note(now, "\(node.text) wants \(goal)")
        wait(for: goal, behind: .zero, on: node)
    }

    // MARK: The nodes' events

    func hearEvents(_ node: SimulatedNode) throws(Violation) {
        let events = node.tells.events.withLock { exchange(&$0, with: []) }
        for event in events {
            switch event {
            case .diverged(let divergence):
                trace.note(now, "\(node.text): \(divergence)")
                checkSpoilt(divergence.store, node.text)
                if let violation { throw violation }
            case .storeStopped(let store, let at?, let message):
                trace.note(now, "\(node.text): \(store) stops at \(at)")
                node.hasStopped = true
                if node.deaths.contains(where: { $0.store == store && $0.at == at }) {
                    marks.hit(.poisonStopped)
                    noteStop(of: store, on: node)
                } else if !message.contains("newer program") {
                    throw Violation("P1", "\(store) stopped on \(node.text): \(message)")
                }
            default: break
            }
        }
    }

    func checkSpoilt(_ store: StoreName, _ who: String) {
        guard !truth.snapshots.spoilt.contains(store) else { return }
        fail("P1", "\(who) says that replicas of \(store) differ, and none did")
    }

    /// Checks that a store stops only at an entry that its process must not apply.
    func checkStopped(
        _ store: any SimulatedStore, _ message: String, _ node: SimulatedNode
    ) throws(Violation) {
        node.hasStopped = true
        let isOlder = node.states.contains {
            $0.name == store.name.state && $0.schemaVersion < states(of: release)[0].schemaVersion
        }
        guard
            isOlder || node.program.fault != nil
                || node.deaths.contains(where: { $0.store == store.name })
        else {
            throw Violation("P1", "\(store.name) stopped on \(node.text): \(message)")
        }
    }

    /// Notes which replicas discard their state.
    func noteLoading(_ job: ApplyJob, _ node: SimulatedNode) {
        // A store that is reset keeps its former state until it gets another one.
        if case .deliver(.restore(let store, _, _, _, _, _, _, _), _, _) = job {
            node.spoilt.remove(store)
        }
        node.tells.inputs.withLock { inputs in
            for case .reported(let report, _) in inputs {
                switch report {
                case .reload: marks.hit(.skippedBehind)
                case .parked: node.hasParked = true
                default: break
                }
            }
        }
    }

    // MARK: The end of faults

    func calmStores() {
        for process in nodes.keys.sorted() {
            guard let node = nodes[process] else { continue }
            // A corrupted replica is replaced only if the others have the majority.
            if isOld(node) || node.program.policy == .never
                || !node.spoilt.isEmpty && random.chance(0.5)
            {
                crash(node)
            }
        }
    }
}
