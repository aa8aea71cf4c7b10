import Conflux
import ConfluxNode
import ConfluxProtocol

/// The nodes: what the link's thread, the applying thread and the program do in a real process.
extension SimulatedCluster {
    func startNode(_ slot: Int) throws(Violation) {
        guard !nodes.values.contains(where: { $0.slot == slot }) else { return }
        let kind = plan.kind(of: slot)
        // One in four has no name, which takes another path through the sequencer's tables. Two nodes may get
        // the same name by mistake: the second one ends, and is started again.
        let named = strikes(plan.nameClash) ? (slot + 1) % plan.nodes : slot
        let name = kind == .worker && slot % 4 != 3 ? Name("node-\(named)") : nil
        let process = takeProcess()
        let node = SimulatedNode(
            slot: slot, process: process, kind: kind,
            settings: plan.replicaSettings(name: name, role: kind.role),
            nonce: .random(using: &random), limits: plan.outboxLimits,
            outboxBytesMax: plan.hasSmallBounds ? 2_048 : 1 << 20,
            shelf: EncodingShelf(bytesMax: plan.keeping.encodingsBytesMax),
            inPlaceBytesMax: plan.keeping.inPlaceBytesMax,
            openBytesMax: plan.openBytesMax, waitingOutcomesMax: plan.waitingOutcomesMax,
            program: drawProgram(of: process, slot), deaths: drawDeaths(),
            clock: { [unowned self] in now })
        node.isMisnamed = named != slot
        if plan.isShared { node.round = drawRound() }
        nodes[node.process] = node
        trace.note(now, "\(node.text) starts")
        try handle(.start, node)
        schedule(.connect(process: node.process), after: latency)
        if kind == .observer { try handle(.follow(from: SequenceNumber(1)), node) }
        if kind == .worker { for state in node.states { bridge(state, on: node) } }
        if kind != .observer {
            schedule(.dispatch(process: node.process), after: plan.dispatchEvery)
        }
        if kind == .worker { beginProgram(on: node) }
        try turn(node)
    }

    // MARK: The link's thread

    func handle(_ input: ReplicaInput, _ node: SimulatedNode) throws(Violation) {
        guard nodes[node.process] != nil else { return }
        var effects: [ReplicaEffect] = []
        let buffered = node.machine.bufferedBytes
        node.machine.handle(input, at: moment(), into: &effects)
        do throws(BrokenInvariant) {
            try node.machine.checkInvariants()
        } catch {
            throw Violation("invariant", "\(node.text): \(error)")
        }
        if case .fed = input, buffered > 0, node.machine.bufferedBytes == 0,
            !effects.contains(where: { if case .deliver(.commit) = $0 { true } else { false } })
        {
            marks.hit(.bufferDropped)
        }
        if node.machine.isDeliveryFull { marks.hit(.deliveryFull) }
        for effect in effects {
            try carryOut(effect, node)
            if strikes(plan.crashAtEffect) {
                marks.hit(.nodeCrashedAtEffect)
                trace.note(now, "\(node.text) crashes behind an effect")
                crash(node)
            }
            guard nodes[node.process] != nil else { return }
        }
    }

    /// What the link's thread does after every input.
    func turn(_ node: SimulatedNode) throws(Violation) {
        while nodes[node.process] != nil,
            node.applier.waitingOutcomeCount < node.applier.waitingOutcomesMax,
            var gathered = node.outbox.take(if: { node.machine.canSubmit(bytes: $0) })
        {
            let count = gathered.builder.count
            let first = node.machine.nextCounter
            if count > 1 { marks.hit(.batchOfSeveral) }
            for offset in 0..<UInt64(count) {
                try require(
                    !node.unplaced.isEmpty, "P3", "\(node.text) submits what nobody dispatched")
                let record = node.unplaced.removeFirst()
                record.session = node.sessionCount
                try truth.place(
                    record,
                    at: DispatchRecord.Key(session: node.session, counter: first + offset))
                node.pending.append(record)
            }
            give(
                .submitted(
                    SubmittedBatch(
                        firstCounter: first, count: count, block: gathered.block,
                        spans: gathered.spans)), to: node)
            node.sent.add(gathered.block, firstCounter: first, count: count)
            let batch = node.machine.batch(of: &gathered.builder, isAtomic: gathered.isAtomic)
            try handle(.dispatched(batch, withdrawn: gathered.withdrawn), node)
        }
        if node.machine.isJoined, !node.outbox.isEmpty { marks.hit(.windowFull) }
        if node.isLeaving { try finishLeaving(node.process, isForced: false) }
        if nodes[node.process] != nil { scheduleTick(node) }
    }

    func scheduleTick(_ node: SimulatedNode) {
        guard let due = node.nextDeadline else { return }
        if let at = node.tickAt, at <= due { return }
        node.tickAt = due
        timeline.schedule(.nodeTick(process: node.process), at: max(due, now))
    }

    private func carryOut(_ effect: ReplicaEffect, _ node: SimulatedNode) throws(Violation) {
        switch effect {
        case .send(let message):
            try observe(message, from: node)
            send(Frame.encode(message, by: node.machine.speaker), from: node)
        case .connect(let address): move(node, to: address)
        case .subscribe(let feed):
            guard !node.wantsFeed || node.feed != feed else { break }
            node.wantsFeed = true
            node.feed = feed
            leaveFeed(node)
            schedule(.subscribe(process: node.process), after: latency)
        case .deliver(let delivery):
            try observe(delivery, node)
            if case .settle(let outcome) = delivery {
                node.sent.settle(outcome)
                node.settledCount += UInt64(outcome.count)
            }
            give(.deliver(delivery, log: node.machine.log, epoch: node.machine.epoch), to: node)
        case .give(let request): try handle(.given(part(request, of: node)), node)
        case .asked(let question): give(.asked(question), to: node)
        case .loaded: break  // No simulated process reads the log for itself.
        case .answered(let answer):
            try hearEffect(answer, node)
            hearLease(answer, node)
            wakeProgram(of: node)
            if case .failed = answer.body {
                marks.hit(.questionFailed)
            } else {
                marks.hit(.questionAnswered)
            }
        case .event(let event):
            if case .joined(let log, let epoch, let incarnation) = event {
                node.sent.beginSession(incarnation, of: log, in: epoch)
                give(.identified(incarnation), to: node)
            }
            try take(event, node)
        case .end(let reason): try end(node, reason)
        }
    }

    private func take(_ event: ReplicaEvent, _ node: SimulatedNode) throws(Violation) {
        trace.note(now, "\(node.text): \(event)")
        switch event {
        case .joined:
            marks.hit(.joined)
            node.sessionCount += 1
        case .reconnected: marks.hit(.sessionTakenUp)
        case .staleSequencer: marks.hit(.staleSequencer)
        case .historyLost:
            marks.hit(.historyLost)
            node.hasLostSession = true
            node.hasLostHistory = true
            try require(
                !truth.former.isEmpty, "P5",
                "\(node.text) was told of a lost history, and the log lost nothing")
        case .sessionForgotten:
            marks.hit(.sessionForgotten)
            node.hasLostSession = true
        case .notAllowed(let message):
            throw Violation("P5", "\(node.text) was denied: \(message)")
        case .notServing(let message):
            try require(plan.isShared, "P5", "\(node.text) was sent away: \(message)")
        case .missed(_, let through):
            marks.hit(.missed)
            node.passedOver = max(node.passedOver, through)
        case .damaged: marks.hit(.damageMet)
        case .disconnected, .feedSilent, .heldUp: break
        }
    }

    // MARK: The applying thread

    func give(_ job: ApplyJob, to node: SimulatedNode) {
        node.jobs.append(job)
        scheduleApply(node)
    }

    private func scheduleApply(_ node: SimulatedNode) {
        guard !node.isApplyScheduled else { return }
        node.isApplyScheduled = true
        var takes = random.duration(in: .microseconds(5)...(.microseconds(400)))
        if strikes(plan.slowApply) {
            marks.hit(.applySlow)
            takes = random.duration(in: .milliseconds(10)...(.seconds(1)))
        }
        schedule(.apply(process: node.process), after: takes)
    }

    func apply(_ node: SimulatedNode) throws(Violation) {
        node.isApplyScheduled = false
        let count = random.int(in: 1...max(1, node.jobs.count))
        let due = node.jobs.prefix(count)
        node.jobs.removeFirst(min(count, node.jobs.count))
        for job in due {
            try perform(job, node)
            guard nodes[node.process] != nil else { return }
            try compare(node)
        }
        if !node.jobs.isEmpty { scheduleApply(node) }
        try hearOutcomes(node)
        wakeProgram(of: node)
        try gather(node)
    }

    /// Outcomes are checked against the stores that are here when they are reported.
    private func perform(_ job: ApplyJob, _ node: SimulatedNode) throws(Violation) {
        if case .deliver(.migrate, _, _) = job, !beginMigration(node) { return }
        run(node) { node.scope.run { node.applier.perform(job) } }
        node.noteEnd(by: job)
        noteLoading(job, node)
        try hearEvents(node)
        try hearReached(node)
        if node.applier.toldCount != node.heardCount { try hearOutcomes(node) }
    }

    /// Collects the work that the applier has left for other threads.
    func gather(_ node: SimulatedNode) throws(Violation) {
        let work = node.tells.work.withLock { exchange(&$0, with: SimulatedNode.Work()) }
        for job in work.posted { give(job, to: node) }
        scheduleStoreWork(node)
        if !work.background.isEmpty {
            node.background += work.background
            scheduleBackground(node)
        }
        schedule(work.migrations, of: node)
        let isNews = node.applier.progress != node.seen || !node.tells.inputs.withLock(\.isEmpty)
        guard !node.areTellsScheduled, isNews else { return }
        node.areTellsScheduled = true
        schedule(
            .tell(process: node.process), after: random.duration(in: .zero...(.microseconds(200))))
    }

    private func scheduleBackground(_ node: SimulatedNode) {
        guard !node.isBackgroundScheduled else { return }
        node.isBackgroundScheduled = true
        var takes = random.duration(in: .microseconds(20)...(.milliseconds(5)))
        if strikes(plan.slowApply) {
            takes = random.duration(in: .milliseconds(10)...(.milliseconds(500)))
        }
        if strikes(plan.slowCoding) {
            marks.hit(.codingSlow)
            takes = random.duration(in: .milliseconds(500)...(.seconds(4)))
        }
        schedule(.background(process: node.process), after: takes)
    }

    /// Does the long-running work in order, while other entries are applied.
    func workBehind(_ node: SimulatedNode) throws(Violation) {
        node.isBackgroundScheduled = false
        guard !node.background.isEmpty else { return }
        let work = node.background.removeFirst()
        run(node, work)
        if !node.background.isEmpty { scheduleBackground(node) }
        try gather(node)
    }

    private func scheduleStoreWork(_ node: SimulatedNode) {
        guard !node.isStoreWorkScheduled, !node.late.isIdle else { return }
        node.isStoreWorkScheduled = true
        marks.hit(.storeSlow)
        schedule(
            .workStore(process: node.process),
            after: random.duration(
                in: .zero...(isHostile && random.chance(0.2) ? .seconds(1) : .milliseconds(5))))
    }

    /// Lets stores with an executor of their own continue.
    func workStore(_ node: SimulatedNode) throws(Violation) {
        node.isStoreWorkScheduled = false
        run(node) { node.scope.run { node.late.runFirst() } }
        try compare(node)
        try hearOutcomes(node)
        wakeProgram(of: node)
        try gather(node)
    }

    func tell(_ node: SimulatedNode) throws(Violation) {
        node.areTellsScheduled = false
        let inputs = node.tells.inputs.withLock { exchange(&$0, with: []) }
        for input in inputs { try handle(input, node) }
        if node.applier.progress != node.seen {
            node.seen = node.applier.progress
            try handle(.applied(node.seen), node)
        }
        if nodes[node.process] != nil { try turn(node) }
    }

    // MARK: Ends

    func crash(_ node: SimulatedNode) {
        noteRises(server, host: node)
        nodes[node.process] = nil
        node.late.end()
        if let connection = node.connection { endConnection(connection) }
        if let subscription = node.subscription { subscriptions[subscription] = nil }
        schedule(
            .startNode(slot: node.slot),
            after: random.duration(in: .milliseconds(50)...(.seconds(5))))
    }

    private func end(_ node: SimulatedNode, _ reason: ReplicaEnd) throws(Violation) {
        trace.note(now, "\(node.text) ends: \(reason)")
        if case .left = reason { marks.hit(.nodeLeft) } else { marks.hit(.nodeRefused) }
        node.hasLostSession = true
        let rest = node.outbox.takeRest()
        for gathered in rest {
            node.jobs.append(.abandoned(gathered.block, count: gathered.builder.count))
            for _ in 0..<gathered.builder.count where !node.unplaced.isEmpty {
                node.pending.append(node.unplaced.removeFirst())
            }
        }
        for job in node.jobs { try perform(job, node) }
        node.scope.run { node.applier.finish(dropping: []) }
        node.jobs = []
        try hearOutcomes(node)
        try hearReached(node)
        if let record = node.pending.first {
            throw Violation("P5", "\(record.text) has no outcome though its node has ended")
        }
        try require(
            node.waits.isEmpty, "P5", "\(node.text) has ended, and somebody waits there still")
        // The bye may still be under way: it arrives, or is lost with the connection.
        if let connection = node.connection { closeConnection(connection) }
        nodes[node.process] = nil
        node.late.end()
        if let subscription = node.subscription { subscriptions[subscription] = nil }
        schedule(
            .startNode(slot: node.slot),
            after: random.duration(in: .milliseconds(50)...(.seconds(3))))
    }
}
