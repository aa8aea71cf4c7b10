import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// Newer programs (rule 17): they are released one after the other, and the nodes get them one by one.
extension SimulatedCluster {
    /// The newest program that is released.
    var newestRelease: Int { states.map(\.newer.count).max() ?? 0 }

    /// The states in a program; the first one is number 0.
    func states(of release: Int) -> [SimulatedState] {
        states.map { release > 0 ? $0.newer.prefix(release).last ?? $0 : $0 }
    }

    /// Draws what a process that starts now runs.
    func drawProgram(of process: Int, _ slot: Int) -> Program {
        guard plan.upgradeEvery != nil else { return Program(states: states(of: release)) }
        var program = Program(states: states(of: release))
        program.release = release
        if isHostile {
            if release > 0, random.chance(plan.rollback) {
                program.release -= 1
                marks.hit(.rolledBack)
            }
            program.fault = releaseFault
            if random.chance(plan.badMigration / 2) { program.fault = drawFault() }
            if random.chance(plan.policies) {
                program.policy = random.chance(0.7) ? .whenTold : .never
            }
        } else if let needed = neededRelease, plan.bringsFormerProgram, slot == 0 {
            program.release = needed
        }
        if program.fault == .differing(process: 0) {
            program.fault = .differing(process: process)
        }
        program.states = states(of: program.release)
        return program
    }

    private func drawFault() -> MigrationFault {
        random.pick([
            .throwing, .throwing, .throwing, .differing(process: 0), .differing(process: 0),
            .differing(process: 0), .differing(process: 0), .differing(process: 0),
            .differing(process: 0), .differing(process: 0), .differing(process: 0),
            .differing(process: 0), .killing, .killing, .killing, .hanging,
        ])
    }

    /// A program is released, is repaired, or gets to another node.
    func upgrade() throws(Violation) {
        guard newestRelease > 0 else { return }
        if release == 0 || release < newestRelease && random.chance(0.15) {
            release += 1
            releaseFault = random.chance(plan.badMigration) ? drawFault() : nil
            trace.note(
                now,
                "program \(release) is released, "
                    + (releaseFault.map { "whose migrations are \($0)" } ?? "without a fault"))
            return
        }
        if releaseFault != nil, random.chance(0.2) {
            releaseFault = nil
            trace.note(now, "program \(release) is repaired")
        }
        let old = nodes.values.filter { isOld($0) }.map(\.process)
        guard let node = pick(old).flatMap({ nodes[$0] }) else { return }
        trace.note(now, "\(node.text) gets another program")
        if random.chance(0.5) { try leave(node) } else { crash(node) }
    }

    func isOld(_ node: SimulatedNode) -> Bool {
        plan.upgradeEvery != nil && node.kind == .worker
            && (node.program.release != release || node.program.fault?.kind != releaseFault?.kind)
    }

    /// The newest program that can host the present version of a store that the newest one can't host; nil if the
    /// newest one can host all.
    private var neededRelease: Int? {
        // Nobody raises the version of a frozen store.
        for history in truth.branch.presentLives
        where !history.isFrozen && !truth.replays.damaged.contains(history.name) {
            guard let state = states.first(where: { $0.name == history.name.state }),
                let newest = ([state] + state.newer).last, newest.oldestVersion > history.version
            else { continue }
            return state.newer.lastIndex { $0.oldestVersion <= history.version }.map { $0 + 1 } ?? 0
        }
        return nil
    }

    // MARK: Asking for a newer version

    /// People ask for a newer version of a store, and programs open again what they could not open.
    func tendVersions(_ node: SimulatedNode) throws(Violation) {
        guard plan.upgradeEvery != nil else { return }
        if !isHostile || random.chance(0.02) { askUpgrade(node) }
        // It was only there to raise versions that newer programs can't host.
        if !isHostile, node.program.release != release, neededRelease == nil {
            return try leave(node)
        }
        guard !isHostile, random.chance(0.5) else { return }
        for name in node.unopened.sorted() {
            guard let state = node.states.first(where: { $0.name == name.state }) else { continue }
            node.unopened.remove(name)
            open(name, state, on: node)
        }
    }

    private func askUpgrade(_ node: SimulatedNode) {
        // What nobody can open is not upgraded, and the node that asked waits.
        let asked: [StoreName] = node.waits.values.compactMap {
            if case .upgraded(let name, _, _, _) = $0.goal { name } else { nil }
        }
        let lives = states.first?.stores.compactMap { truth.branch.presentLife($0) } ?? []
        let wanted = lives.filter {
            !asked.contains($0.name) && (isHostile || mustBeTold($0))
        }
        guard !wanted.isEmpty, case let history = random.pick(wanted) else { return }
        let isReplay = isHostile ? random.chance(0.1) : !plan.bringsFormerProgram
        if isReplay { truth.replays.lives.insert(history.life) }
        marks.hit(.upgradeAsked)
        decide(
            .upgraded(
                history.name, life: history.life,
                version: random.chance(0.5) ? 0 : history.version + 1, mayReplay: isReplay),
            on: node)
    }

    /// Whether a version does not rise by itself.
    private func mustBeTold(_ history: StoreHistory) -> Bool {
        guard whatIsNotUpgraded(history) != nil else { return false }
        guard let server, server.machine.failedUpgrade(of: history.name) == nil else { return true }
        let hosts = nodes.values.filter { $0.store(history.name) != nil }
        return hosts.isEmpty || hosts.contains { $0.program.policy != .whenAllUnderstand }
    }

    /// The versions that hosts of a store could raise and have not raised; nil if there are none.
    func whatIsNotUpgraded(_ history: StoreHistory) -> String? {
        guard plan.upgradeEvery != nil,
            let state = states.first(where: { $0.name == history.name.state }),
            let newest = states(of: release).first(where: { $0.name == state.name }),
            history.version < newest.schemaVersion
        else { return nil }
        return "\(history.name) has version \(history.version) still"
    }

    // MARK: Faults of migrations

    /// Runs a part of a process, whose migrations may have a fault.
    func run(_ node: SimulatedNode, _ body: () -> Void) {
        guard let fault = node.program.fault else { return body() }
        MigrationFault.$present.withValue(fault) { body() }
    }

    /// A migration begins that nothing waits for.
    ///
    /// - Returns: Whether the process goes on.
    func beginMigration(_ node: SimulatedNode) -> Bool {
        guard node.program.fault == .killing else { return true }
        trace.note(now, "\(node.text) dies of a migration")
        marks.hit(.migrationKilled)
        crash(node)
        return false
    }

    /// Migrations run apart from everything else.
    func schedule(_ migrations: [@Sendable () -> Void], of node: SimulatedNode) {
        for migration in migrations {
            guard node.program.fault != .hanging else {
                marks.hit(.migrationHung)
                continue
            }
            node.migrations.append(migration)
            schedule(
                .migrate(process: node.process),
                after: random.duration(
                    in: .microseconds(
                        50)...(isHostile && random.chance(0.2) ? .seconds(1) : .milliseconds(5))))
        }
    }

    func migrate(_ node: SimulatedNode) throws(Violation) {
        guard !node.migrations.isEmpty else { return }
        let work = node.migrations.removeFirst()
        if case .differing = node.program.fault, !hasPeer(node) { work() } else { run(node, work) }
        try gather(node)
    }

    /// Whether others host each store of a node, too, so that a migration that differs is noticed.
    private func hasPeer(_ node: SimulatedNode) -> Bool {
        (node.stores.map(\.name) + node.opening).allSatisfy { name in
            nodes.values.contains {
                $0 !== node && $0.store(name) != nil && $0.connection != nil
            }
        }
    }

    /// Notes what a process that makes other states than others says of a migration.
    func note(_ migrated: Migrated, of node: SimulatedNode) {
        if case .differing = node.program.fault, case .migrated(let digest) = migrated.outcome {
            truth.replays.differing.insert(digest)
        }
    }

    // MARK: Leaving

    /// A node leaves in good order.
    func leave(_ node: SimulatedNode) throws(Violation) {
        guard !node.isLeaving else { return }
        trace.note(now, "\(node.text) wants to leave")
        node.isLeaving = true
        schedule(.giveUpLeaving(process: node.process), after: .seconds(5))
        if !node.isPaused { try turn(node) }
    }

    /// A node whose actions have outcomes says that it is about to leave.
    ///
    /// - Returns: Whether it may leave now.
    func sayLeaving(_ node: SimulatedNode) throws(Violation) -> Bool {
        if plan.upgradeEvery != nil, node.leavingSince == nil, node.process % 4 != 0 {
            node.leavingSince = now
            try handle(.leaving, node)
        }
        guard nodes[node.process] != nil, !node.machine.awaitsLeaving else { return false }
        if let since = node.leavingSince,
            node.stores.contains(where: { savedAt[$0.name].map { $0 > since } == true })
        {
            marks.hit(.leftWithSnapshot)
        }
        return true
    }

    // MARK: Checks

    /// Only programs that understand a version are asked to migrate to it (rule 17).
    func checkAsked(_ migrate: Migrate, on connection: UInt64) throws(Violation) {
        marks.hit(.migrationAsked)
        guard let node = connections[connection].flatMap({ nodes[$0.node.process] }),
            let state = node.states.first(where: { $0.name == migrate.store.state }),
            state.schemaVersion < migrate.schemaVersion
        else { return }
        throw Violation(
            "order",
            "\(node.text) is asked for version \(migrate.schemaVersion) of \(migrate.store), and "
                + "knows \(state.schemaVersion)")
    }

    /// Whether a sequencer crashes while it fences a store that is upgraded, or while the word of the upgrade is on its
    /// way to the log.
    func crashesAtWord(_ sequencer: SimulatedSequencer) -> Bool {
        guard plan.upgradeEvery != nil, case .append? = sequencer.logJobs.first else {
            return false
        }
        let steps = sequencer.machine.risingSteps.map(\.1)
        let isFencing = steps.contains { if case .fencing = $0 { true } else { false } }
        return isFencing ? strikes(0.5) : steps.contains(.ready) && strikes(0.1)
    }

    // MARK: Marks

    /// A process ends while versions rise.
    func noteRises(_ sequencer: SimulatedSequencer?, host node: SimulatedNode? = nil) {
        guard let sequencer, sequencer.isServing, sequencer.machine.epoch == disk.epoch else {
            return
        }
        for (name, step) in sequencer.machine.risingSteps
        where node == nil || node?.store(name) != nil || node?.opening.contains(name) == true {
            switch step {
            case .nearing, .rehearsing: marks.hit(.killedRehearsing)
            case .fencing: marks.hit(.killedFencing)
            case .saving: marks.hit(.killedSaving)
            case .migrating: marks.hit(.killedMigrating)
            case .ready: marks.hit(.killedReady)
            }
        }
    }

    func noteFailedUpgrade(_ reason: String) {
        marks.hit(.upgradeFailed)
        if reason.contains("another state") { marks.hit(.migrationDiffered) }
        if reason.contains("Thrown") { marks.hit(.migrationFailed) }
    }

    /// A node could not open a store.
    func note(unopened name: StoreName, _ error: NodeError, on node: SimulatedNode) {
        node.unopened.insert(name)
        if error.rejection == .damaged { truth.replays.damaged.insert(name) }
        guard error.rejection == .schemaVersion || error.rejection == .upgradeFailed,
            let history = truth.branch.presentLife(name),
            let state = node.states.first(where: { $0.name == name.state })
        else { return }
        if state.schemaVersion < history.version { marks.hit(.refusedOlder) }
        if state.oldestVersion > history.version { marks.hit(.refusedNewer) }
    }
}

/// What a process runs.
struct Program {
    var release = 0
    var states: [SimulatedState]
    /// What is wrong with its migrations.
    var fault: MigrationFault?
    /// When the versions of its stores rise.
    var policy = UpgradePolicy.whenAllUnderstand

    init(states: [SimulatedState]) { self.states = states }
}
