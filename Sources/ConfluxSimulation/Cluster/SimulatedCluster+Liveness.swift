import Conflux
import ConfluxProtocol

/// What must come true once faults have ended.
extension SimulatedCluster {
    /// The sequencer that has the address; if several share a log, the one that serves.
    var server: SimulatedSequencer? {
        guard plan.isShared else { return listening.flatMap { sequencers[$0] } }
        return sequencers.values.first { $0.isServing && $0.machine.epoch == disk.epoch }
    }

    /// Describes what is still missing; nil if everything is current.
    var whatIsMissing: String? {
        guard let sequencer = server, sequencer.isServing else {
            return "no sequencer serves"
        }
        let last = sequencer.machine.last
        if last != disk.last { return "the sequencer is at \(last), the log at \(disk.last)" }
        let timestamp = truth.branch.commits.last?.commit.timestamp ?? Timestamp(0)
        let late = truth.branch.requests.overdue(at: timestamp) {
            truth.branch.presentLife($0)?.isFrozen ?? false
        }
        if let late { return "timer \(late) has not fired" }
        for slot in 0..<plan.slots {
            guard let node = nodes.values.first(where: { $0.slot == slot }) else {
                return "node \(slot) has not started again"
            }
            if let missing = whatIsMissing(of: node, last) { return "\(node.text): \(missing)" }
        }
        return nil
    }

    private func whatIsMissing(of node: SimulatedNode, _ last: SequenceNumber) -> String? {
        if node.isLeaving { return "it wants to leave" }
        if !node.machine.isJoined { return "it has not joined" }
        if node.machine.epoch != server?.machine.epoch {
            return "it is in another epoch"
        }
        if !node.pending.isEmpty || !node.unplaced.isEmpty { return "actions have no outcome" }
        if !node.opening.isEmpty { return "stores are being opened" }
        if let wait = whatIsWaitedFor(on: node) { return "somebody waits there \(wait)" }
        // Who only dispatches follows nothing.
        if node.kind != .dispatcher, node.machine.live != last {
            return "it is at \(String(describing: node.machine.live))"
        }
        if !node.jobs.isEmpty || node.areTellsScheduled || !node.late.isIdle {
            return "it has not applied everything"
        }
        if node.kind == .worker, node.machine.applied != last { return "it has not applied all" }
        for store in node.stores where node.applier.place(of: store.name)?.hasCaughtUp != true {
            return "\(store.name) has not caught up"
        }
        return nil
    }

    /// Describes a wait that has not ended but must. A wait for a number that the log lost does not count,
    /// since nobody knows when that number comes again.
    private func whatIsWaitedFor(on node: SimulatedNode) -> String? {
        let due = node.waits.filter {
            ($0.value.isAsked || $0.value.histories == truth.former.count) && !$0.value.isEndless
        }
        return due.min { $0.key < $1.key }.map { request, wait in
            "for \(wait.goal), by request \(request)"
        }
    }

    /// Checks the end: all replicas are equal, nodes whose history was lost know it, and tokens tell the truth.
    func checkEnd() throws(Violation) {
        for mark in try truth.checkTokens() { marks.hit(mark) }
        if truth.branch.droppedTimers > 0 { marks.hit(.timerDropped) }
        for node in nodes.values { try compare(node, isFinal: true) }
    }
}
