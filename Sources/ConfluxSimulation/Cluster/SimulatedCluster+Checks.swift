import Conflux
import ConfluxNode
import ConfluxProtocol

/// What is looked at as it happens.
extension SimulatedCluster {
    // MARK: What the sequencer says

    func observe(
        _ message: SequencerMessage, to connection: UInt64, from sequencer: SimulatedSequencer
    ) throws(Violation) {
        switch message {
        case .receipts(let receipts):
            let node = connections[connection].flatMap { nodes[$0.node] }
            for run in receipts.runs {
                try truth.receipted(run, durableThrough: disk.durableThrough)
                if let node, run.firstCounter + UInt64(run.count) <= node.announcedBelow {
                    marks.hit(.deduplicated)
                }
                node?.announcedBelow = max(
                    node?.announcedBelow ?? 0, run.firstCounter + UInt64(run.count))
            }
        case .rejection(let rejection):
            marks.hit(rejection.code == .unrecorded ? .unrecorded : .rejected)
        case .expected(let expected):
            marks.hit(expected.reason == .gap ? .expectedGap : .expectedFull)
        case .bye(let bye):
            switch bye.code {
            case .rejoin: marks.hit(.rejoinAsked)
            case .nameTaken: marks.hit(.nameTaken)
            case .tableFull: marks.hit(.tableFull)
            case .forgotten:
                if let node = connections[connection].flatMap({ nodes[$0.node] }),
                    node.machine.incarnation != .none, sequencer.machine.epoch == disk.epoch
                {
                    try truth.forgot(node.machine.incarnation, of: node.machine.log)
                }
            default: break
            }
        case .question(let question):
            if question.body == .alive { marks.hit(.nameAsked) }
        case .welcome(let welcome):
            try truth.claimed(welcome.last, durableThrough: disk.durableThrough)
            // Who is superseded and does not know it yet speaks of its own past.
            if sequencer.machine.epoch == disk.epoch {
                try truth.welcomed(welcome.incarnation, durableThrough: disk.durableThrough)
            }
        case .opened, .entries, .answer, .confirmed, .snapshotServed, .snapshotRequest,
            .divergence, .reload:
            break
        }
    }

    // MARK: What the log says

    func markEvents(of commit: Commit) {
        for block in commit.blocks {
            guard case .event(let event) = block else { continue }
            switch event {
            case .joined(_, _, let rejoining, _) where rejoining != .none:
                marks.hit(.rejoinedAfterLeft)
                away.remove(rejoining)
            case .left(let incarnation): away.insert(incarnation)
            case .forgotten(let incarnation):
                marks.hit(
                    away.remove(incarnation) == nil ? .forgottenAfterBye : .forgottenWhileAway)
            case .created(let name, _, _):
                let openers = nodes.values.filter { $0.opening.contains(name) }
                if openers.count > 1 { marks.hit(.concurrentCreators) }
            case .dropped: marks.hit(.dropped)
            case .claim, .joined, .upgraded, .frozen, .thawed, .digestPoint, .skipped: break
            }
        }
    }

    // MARK: What nodes say and have

    func observe(_ message: NodeMessage, from node: SimulatedNode) throws(Violation) {
        switch message {
        case .submit(let batch):
            try truth.submitted(batch, of: node.machine.incarnation, in: node.machine.log)
            if batch.isVoid { marks.hit(.voidSubmitted) }
            if batch.firstCounter < node.submittedBelow { marks.hit(.resubmitted) }
            node.submittedBelow = batch.lastCounter + 1
        case .fetch(let fetch):
            marks.hit(
                fetch.from == node.machine.live?.next ? .holeFetched : .catchUpFetched)
        default: break
        }
    }

    func observe(_ delivery: Delivery, _ node: SimulatedNode) throws(Violation) {
        switch delivery {
        case .commit(let commit, _):
            if let delivered = node.delivered, commit.first != delivered.next,
                commit.first > delivered.next
            {
                throw Violation(
                    promise: "P1",
                    message: "\(node.text) delivers \(commit.first) behind \(delivered)")
            }
            node.delivered = commit.last
            try truth.delivered(commit)
        case .catchUp(let commit, _): try truth.delivered(commit)
        case .reset: node.delivered = nil
        case .attach: marks.hit(.lateStoreAttached)
        case .restore(_, let life, _, _, _, _):
            if life.rawValue < node.machine.incarnation.rawValue { marks.hit(.adopted) }
        case .passOver(let last): node.delivered = last
        case .settle, .opened, .reached, .begin, .detach, .compare: break
        }
    }

    /// The replicas of a node are what their stores should be.
    func compare(_ node: SimulatedNode, isFinal: Bool = false) throws(Violation) {
        for store in node.stores {
            guard let place = node.applier.place(of: store.name), place.isAttached else { continue }
            if let message = place.stopped {
                throw Violation(
                    promise: "P1", message: "\(store.name) stopped on \(node.text): \(message)")
            }
            guard isFinal || node.compared[store.name] != place.position else { continue }
            node.compared[store.name] = place.position
            try truth.check(
                store.name, life: place.life, at: place.position,
                Digest(of: store.encoded), on: node.text, isCurrentOnly: isFinal)
        }
    }

    /// The program hears what came of its actions (P5, P6).
    func hearOutcomes(_ node: SimulatedNode) throws(Violation) {
        var open: [DispatchRecord] = []
        for record in node.pending {
            guard let outcome = record.handle.outcome else {
                open.append(record)
                continue
            }
            let hosted = node.stores.compactMap { store in
                node.applier.place(of: store.name).map {
                    HostedLife(store: store.name, life: $0.life)
                }
            }
            try truth.told(record, outcome, hosted: hosted)
            trace.note(now, "  \(record.text): \(outcome.summary)")
            switch outcome {
            case .committed(let receipt):
                marks.hit(.receipt)
                try checkApplied(receipt, of: record, node)
            case .failed(let error):
                if let receipt = error.receipt {
                    marks.hit(.refused)
                    try checkApplied(receipt, of: record, node)
                } else if error.code == .withdrawn {
                    marks.hit(.withdrawn)
                } else if (error.reason as? RejectionReason)?.code == .otherLife {
                    marks.hit(.otherLife)
                } else if error.code == .outcomeUnknown {
                    marks.hit(.unknownOutcome)
                    if !node.hasLostSession {
                        throw Violation(
                            promise: "P5",
                            message: "\(record.text) ended unknown, and its session was not lost")
                    }
                }
            }
        }
        node.pending = open
    }

    /// Who has a receipt sees it in its own replicas (P6).
    private func checkApplied(
        _ receipt: Receipt, of record: DispatchRecord, _ node: SimulatedNode
    ) throws(Violation) {
        guard let target = record.target, !node.hasLostHistory else { return }
        for store in node.stores where target.reaches(store.name) {
            guard let place = node.applier.place(of: store.name), place.isAttached,
                place.position < receipt.sequence
            else { continue }
            throw Violation(
                promise: "P6",
                message:
                    "\(record.text) has its receipt for \(receipt.sequence), and \(store.name) "
                    + "on its node is at \(place.position)")
        }
    }
}
