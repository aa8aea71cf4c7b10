import ConfluxNode
import ConfluxProtocol

/// Waiting for a number: for the latest one (rule 29), and for that of somebody's receipt (P6).
extension SimulatedCluster {
    /// The program wants to read what everybody was told of until now.
    func askBarrier(_ node: SimulatedNode) {
        marks.hit(.barrierAsked)
        wait(for: .latest, behind: disk.durableThrough, on: node)
    }

    /// The program got somebody's receipt, by a way of its own, and wants to see what it is for.
    func awaitReceipt(_ node: SimulatedNode) {
        guard let last = disk.commits.last?.last, last > .zero else { return }
        let sequence = SequenceNumber(UInt64(random.int(in: 1...Int(last.rawValue))))
        guard sequence <= disk.durableThrough else { return }
        marks.hit(.receiptAwaited)
        wait(for: .receipt(sequence, disk.id), behind: sequence, on: node)
    }

    private func wait(
        for goal: Wait.Goal, behind sequence: SequenceNumber, on node: SimulatedNode
    ) {
        let request = takeNumber()
        let isBarrier = if case .latest = goal { true } else { false }
        node.waits[request] = SimulatedWait(
            sequence: sequence, histories: truth.former.count, isBarrier: isBarrier)
        let tells = node.tells
        let wait = Wait(request: request, goal: goal) { result in
            let sequence: SequenceNumber? =
                if case .success(let reached) = result { reached } else { nil }
            tells.reached.withLock { $0.append((request, sequence)) }
        }
        give(.wait(wait), to: node)
    }

    /// The program hears that the node has a number.
    func hearReached(_ node: SimulatedNode) throws(Violation) {
        let told = node.tells.reached.withLock { reached in
            defer { reached = [] }
            return reached
        }
        for (request, reached) in told {
            guard let wait = node.waits.removeValue(forKey: request) else {
                let text = "wait \(request) of \(node.text) was told twice"
                throw Violation(promise: "P5", message: text)
            }
            guard let reached else {
                marks.hit(.waitFailed)
                continue
            }
            if wait.isBarrier { marks.hit(.barrierConfirmed) }
            try check(wait, reached: reached, node)
        }
    }

    /// Who is told sees it in its own replicas.
    private func check(
        _ wait: SimulatedWait, reached: SequenceNumber, _ node: SimulatedNode
    ) throws(Violation) {
        // What the log has lost since nobody can see.
        guard wait.histories == truth.former.count else { return }
        guard reached >= wait.sequence else {
            throw Violation(
                promise: "P6",
                message: "\(node.text) asked behind \(wait.sequence) and was told \(reached)")
        }
        for store in node.stores {
            guard let due = truth.branch.lastChange(of: store.name, through: wait.sequence) else {
                continue
            }
            let place = node.applier.place(of: store.name)
            // One that is loaded anew catches up, and may have come far enough.
            guard let place, place.position >= due else {
                let position = place.map { "\($0.position)" } ?? "no position"
                throw Violation(
                    promise: "P6",
                    message: "\(node.text) was told that it has \(wait.sequence), and "
                        + "\(store.name) is at \(position) there, not at \(due)")
            }
        }
    }
}

/// Somebody waits until a node has a number.
struct SimulatedWait {
    /// What it must have when it is told.
    var sequence: SequenceNumber
    /// How often the log had lost its end when it was asked.
    var histories: Int
    /// Whether it was for the latest number.
    var isBarrier: Bool
}
