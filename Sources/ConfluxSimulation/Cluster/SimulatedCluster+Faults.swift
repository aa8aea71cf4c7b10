import ConfluxProtocol

/// The faults, as they happen.
extension SimulatedCluster {
    func scheduleNext(_ fault: ClusterFault) {
        guard let interval = plan.interval(of: fault) else { return }
        let delay =
            fault == .damage
            ? damageRandom.duration(around: interval) : random.duration(around: interval)
        schedule(.fault(fault), after: delay)
    }

    func strike(_ fault: ClusterFault) throws(Violation) {
        guard isHostile else { return }
        defer { scheduleNext(fault) }
        switch fault {
        case .breakConnection:
            if random.chance(0.5), let number = pick(connections.keys) {
                breakConnection(number)
            } else if let number = pick(subscriptions.keys) {
                breakSubscription(number)
            }
        case .crashNode:
            guard let node = pickNode() else { return }
            marks.hit(.nodeCrashed)
            trace.note(now, "\(node.text) crashes")
            crash(node)
        case .crashSequencer:
            guard let sequencer = pickSequencer() else {
                return
            }
            marks.hit(.sequencerCrashed)
            trace.note(now, "sequencer \(sequencer.process) crashes")
            try crash(sequencer)
        case .pause: pause()
        case .leave: try leave()
        case .losePower: losePower()
        case .restoreCopy: restoreCopy()
        case .reopen: try reopen()
        case .freeze: try freeze()
        case .spoil: spoil()
        case .poison: poison()
        case .upgrade: try upgrade()
        case .damage: damage()
        case .cutFromLog, .cutFromNodes, .stopLog: cut(fault)
        case .handOver: askHandover()
        }
        if let violation { throw violation }
    }

    func pick<Key: Comparable>(_ keys: some Collection<Key>) -> Key? {
        keys.isEmpty ? nil : random.pick(keys.sorted())
    }

    func pickNode() -> SimulatedNode? { pick(nodes.keys).flatMap { nodes[$0] } }

    func pickSequencer() -> SimulatedSequencer? { pick(sequencers.keys).flatMap { sequencers[$0] } }

    private func pause() {
        let pause = random.duration(
            in: .milliseconds(50)...(random.chance(0.3) ? .seconds(15) : .seconds(1)))
        if nodes.values.contains(where: { $0.connection != nil && !$0.machine.isJoined }) {
            marks.hit(.stoppedInHandshake)
        }
        if random.chance(0.5), let node = pickNode() {
            self.pause(node, for: pause)
        } else if let sequencer = pickSequencer() {
            guard !sequencer.isPaused else { return }
            sequencer.isPaused = true
            marks.hit(.sequencerPaused)
            trace.note(now, "sequencer \(sequencer.process) is stopped for \(pause.text) s")
            schedule(.resume(process: sequencer.process), after: pause)
            if plan.hasRivals, random.chance(0.7) {
                schedule(.startSequencer, after: random.duration(in: plan.rivalsAfter))
            }
        }
    }

    func pause(_ node: SimulatedNode, for pause: Duration) {
        guard !node.isPaused else { return }
        node.isPaused = true
        marks.hit(.nodePaused)
        trace.note(now, "\(node.text) is stopped for \(pause.text) s")
        schedule(.resume(process: node.process), after: pause)
    }

    func resume(_ process: Int) {
        if let node = nodes[process], node.isPaused {
            node.isPaused = false
            trace.note(now, "\(node.text) goes on")
            if node.reconnectedWhilePaused {
                node.reconnectedWhilePaused = false
                node.tells.inputs.withLock { $0.insert(.reconnected, at: 0) }
                schedule(.tell(process: process), after: .zero)
            }
            for event in node.deferred { schedule(event, after: .zero) }
            node.deferred = []
        } else if let sequencer = sequencers[process], sequencer.isPaused {
            sequencer.isPaused = false
            trace.note(now, "sequencer \(sequencer.process) goes on")
            for event in sequencer.deferred { schedule(event, after: .zero) }
            sequencer.deferred = []
        }
    }

    private func leave() throws(Violation) {
        if random.chance(0.6), let node = pickNode() {
            try leave(node)
        } else if let sequencer = stoppable, !sequencer.isPaused {
            trace.note(now, "sequencer \(sequencer.process) is asked to stop")
            guard sequencer.standby?.isStandingBy != true else { return remove(sequencer) }
            try handle(.stop, sequencer)
        }
    }

    private var stoppable: SimulatedSequencer? {
        guard plan.isShared, random.chance(0.3) else { return server }
        return pickSequencer()
    }

    /// The sequencers' machine loses power, with everything that its disk had not synced.
    private func losePower() {
        trace.note(now, "power is lost")
        endAllSequencers()
        if disk.losePower() {
            marks.hit(.powerLostWithTail)
            loseHistory()
        }
    }

    private func restoreCopy() {
        guard random.chance(0.5) else {
            disk.takeCopy()
            return
        }
        endAllSequencers()
        if disk.restoreCopy() {
            marks.hit(.oldCopyRestored)
            loseHistory()
        }
    }

    /// Damages a row of the log: a commit in the middle, or a row of the list of snapshots, which a sequencer
    /// reads when it starts.
    private func damage() {
        // With other losses as well, a start may need the damaged commit.
        guard plan.durability == .fsync else { return }
        if damageRandom.chance(0.5) {
            let commits = disk.expendable
            guard !commits.isEmpty else { return }
            let commit = damageRandom.pick(commits)
            trace.note(now, "the commit \(commit.first)…\(commit.last) is damaged")
            disk.damage(commit)
        } else {
            let saved = disk.shelves.snapshots.listed(through: disk.last)
                .filter { $0.kind != .compared }
            guard !saved.isEmpty else { return }
            let snapshot = damageRandom.pick(saved)
            trace.note(now, "the row of the snapshot \(snapshot.key) is damaged")
            endAllSequencers()
            disk.unlist(snapshot)
        }
    }

    private func endAllSequencers() {
        for process in sequencers.keys.sorted() {
            guard let sequencer = sequencers[process] else { continue }
            remove(sequencer)
        }
    }

    private func reopen() throws(Violation) {
        guard let node = pickNode(), node.kind == .worker,
            !node.isPaused
        else { return }
        if !node.stores.isEmpty, random.chance(plan.dropping) {
            drop(random.pick(node.stores).name, on: node)
        } else if !node.stores.isEmpty, random.chance(0.5) {
            let store = random.pick(node.stores)
            trace.note(now, "\(node.text) closes \(store.name)")
            close(store, on: node)
        } else if let state = node.states.first(where: { state in
            node.bridges.contains { $0.name == state.name }
        }) {
            let name = random.pick(state.stores)
            if node.store(name) == nil, !node.opening.contains(name) {
                marks.hit(.reopened)
                open(name, state, on: node)
            }
        }
        try turn(node)
    }

    /// Notes that the log has lost a part of its history.
    func loseHistory() {
        trace.note(now, "the log ends at \(disk.last) now, and is \(disk.id)")
        do throws(Violation) {
            try truth.lost(keeping: disk.commits, of: disk.id)
        } catch {
            fail(error)
        }
    }

    // MARK: The end of faults

    /// Ends all faults.
    func calmDown() {
        isHostile = false
        trace.note(now, "faults end")
        (cutFromLog, cutFromNodes, etcdStoppedUntil) = ([:], [:], .zero)
        // Rivals are found and ended. The one that has the address stays, unless a rival has the log.
        for process in plan.isShared ? [] : sequencers.keys.sorted() {
            guard let sequencer = sequencers[process] else { continue }
            let isSuperseded = sequencer.isServing && sequencer.machine.epoch != disk.epoch
            if process != listening || isSuperseded { remove(sequencer) }
        }
        for process in nodes.keys.sorted() {
            if let node = nodes[process], node.isMisnamed { crash(node) }
        }
        (release, releaseFault) = (plan.upgradeEvery == nil ? 0 : newestRelease, nil)
        calmStores()
        for process in (Array(nodes.keys) + Array(sequencers.keys)).sorted() { resume(process) }
    }
}
