import ConfluxNode

/// Waits for a number: the latest one (rule 29), that of another process's receipt (P6), and the end of a
/// store (rule 16).
extension SimulatedCluster {
    /// The program wants to read everything that anybody has been told until now.
    func askBarrier(_ node: SimulatedNode) {
        marks.hit(.barrierAsked)
        wait(for: .latest, behind: disk.durableThrough, on: node)
    }

    /// The program gets another process's receipt on its own channel, and wants to see its effect.
    func awaitReceipt(_ node: SimulatedNode) {
        // What is in the etcd may not have been told to anybody yet.
        let known = plan.isShared ? min(disk.last, toldThrough) : disk.last
        guard known > .zero else { return }
        let sequence = SequenceNumber(UInt64(random.int(in: 1...Int(known.rawValue))))
        guard sequence <= disk.durableThrough,
            let commit = disk.commits.first(where: { $0.last >= sequence })
        else { return }
        marks.hit(.receiptAwaited)
        let receipt = Receipt(
            log: disk.id, epoch: commit.epoch, sequence: sequence, timestamp: Timestamp(0))
        wait(for: .receipt(receipt), behind: sequence, on: node)
    }

    /// The program drops a store, for all nodes.
    func drop(_ name: StoreName, on node: SimulatedNode) {
        guard let life = node.applier.place(of: name)?.life, life != .zero else { return }
        marks.hit(.dropAsked)
        trace.note(now, "\(node.text) drops \(name), life \(life)")
        wait(for: .dropped(name, life: life), behind: .zero, on: node)
    }

    func wait(
        for goal: Wait.Goal, behind sequence: SequenceNumber, on node: SimulatedNode
    ) {
        let request = takeNumber()
        node.waits[request] = SimulatedWait(
            sequence: sequence, histories: truth.former.count, goal: goal)
        let tells = node.tells
        let wait = Wait(request: request, goal: goal) { result in
            let sequence: SequenceNumber? =
                if case .success(let reached) = result { reached } else { nil }
            tells.reached.withLock { $0.append((request, sequence)) }
        }
        give(.wait(wait), to: node)
    }

    /// The program hears that its node has reached a number.
    func hearReached(_ node: SimulatedNode) throws(Violation) {
        let told = node.tells.reached.withLock { exchange(&$0, with: []) }
        for (request, reached) in told {
            guard let wait = node.waits.removeValue(forKey: request) else {
                let text = "wait \(request) of \(node.text) was told twice"
                throw Violation("P5", text)
            }
            guard let reached else {
                marks.hit(.waitFailed)
                continue
            }
            if case .latest = wait.goal { marks.hit(.barrierConfirmed) }
            if case .upgraded = wait.goal { marks.hit(.told) }
            try check(wait, reached: reached, node)
        }
    }

    /// Checks that the effects are visible in the node's replicas.
    private func check(
        _ wait: SimulatedWait, reached: SequenceNumber, _ node: SimulatedNode
    ) throws(Violation) {
        // If the log has lost entries since, the answer can't be checked.
        guard wait.histories == truth.former.count else { return }
        try require(
            reached >= wait.sequence, "P6",
            "\(node.text) asked behind \(wait.sequence) and was told \(reached)")
        if case .dropped(let store, let life?) = wait.goal,
            // A log that lost its end may use the number of that life again later.
            life <= reached, let history = truth.branch.history(of: store, life: life),
            history.end.map({ $0 > reached }) ?? true
        {
            throw Violation(
                "P5",
                "\(node.text) was told that life \(life) of \(store) is over at "
                    + "\(reached), and it is not")
        }
        if case .upgraded(let store, let life?, let version, _) = wait.goal, life <= reached,
            let history = truth.branch.history(of: store, life: life), history.version < version
        {
            throw Violation(
                "P5",
                "\(node.text) was told that \(store) has version \(version), and it has "
                    + "\(history.version)")
        }
        for store in node.stores {
            guard let due = truth.branch.lastChange(of: store.name, through: wait.sequence) else {
                continue
            }
            let place = node.applier.place(of: store.name)
            if place?.stopped != nil { continue }
            // A store that is being reloaded catches up, and may be far enough.
            guard place != nil, store.position >= due else {
                let position = place.map { _ in "\(store.position)" } ?? "no position"
                throw Violation(
                    "P6",
                    "\(node.text) was told that it has \(wait.sequence), and "
                        + "\(store.name) is at \(position) there, not at \(due)")
            }
        }
    }
}

/// A wait until a node has reached a number.
struct SimulatedWait {
    /// The number that the node must have when the wait ends.
    var sequence: SequenceNumber
    /// How often the log had lost its end when the wait began.
    var histories: Int
    /// The goal of the wait.
    var goal: Wait.Goal

    /// Whether the wait ends even if the log loses entries, because the request is repeated.
    var isAsked: Bool {
        if case .receipt = goal { false } else { true }
    }

    /// Whether it may never end: it is for the version of a store that nobody opens.
    var isEndless: Bool {
        if case .upgraded = goal { true } else { false }
    }
}
