import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// Checks that are made as things happen.
extension SimulatedCluster {
    // MARK: The sequencer's messages

    func observe(
        _ message: SequencerMessage, to connection: UInt64, from sequencer: SimulatedSequencer
    ) throws(Violation) {
        switch message {
        case .receipts(let receipts):
            let node = connections[connection].flatMap { nodes[$0.node.process] }
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
            case .rejoin:
                marks.hit(.rejoinAsked)
                sentBack = connection
            case .nameTaken: marks.hit(.nameTaken)
            case .tableFull: marks.hit(.tableFull)
            case .forgotten:
                if let session = named[connection], sequencer.machine.epoch == disk.epoch {
                    try truth.forgot(session.incarnation, of: session.log)
                }
            default: break
            }
        case .question(let question):
            if question.body == .alive { marks.hit(.nameAsked) }
        case .welcome(let welcome):
            try truth.claimed(welcome.last, durableThrough: disk.durableThrough)
            // A superseded sequencer that has not noticed yet speaks of its own past.
            if sequencer.machine.epoch == disk.epoch {
                try truth.welcomed(welcome.incarnation, durableThrough: disk.durableThrough)
            }
        case .confirmed(let confirmed):
            if case .failed(.passed, _) = confirmed.outcome { marks.hit(.skipRefused) }
        case .snapshotRequest(let request): noteRequest(request, to: connection)
        case .snapshotServed(let served):
            marks.hit(served.chunk.isNone ? .loadRestarted : .partServed)
        case .divergence(let divergence): if divergence.mustReload { marks.hit(.reloaded) }
        case .reload: marks.hit(.reloadAsked)
        case .migrate(let migrate): try checkAsked(migrate, on: connection)
        case .opened(let opened):
            if case .failed(.damaged, _) = opened.outcome { marks.hit(.heldOff) }
        case .entries, .answer, .redirect: break
        }
    }

    // MARK: The log

    func lookAtEvents(of commit: Commit) throws(Violation) {
        var next = commit.first
        for block in commit.blocks {
            let sequence = next
            next = next.advanced(by: UInt64(block.count))
            guard case .event(let event, _) = block else { continue }
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
            case .digestPoint(let name, let life):
                pointAt[SnapshotPlace(store: name, life: life, sequence: sequence)] = now
                if let history = truth.branch.history(of: name, life: life),
                    history.byteCount - history.formerPointBytes < plan.keeping.digestBytesMin
                {
                    marks.hit(.keeperDigested)
                }
            case .upgraded(let name, let life, _, let base, _):
                try checkUpgrade(of: name, life: life, from: base)
                let entries = truth.branch.history(of: name, life: life)?.entries
                if let last = entries?.last?.context.sequence, last > base { marks.hit(.replayed) }
            case .claim, .joined, .visited, .frozen, .thawed, .skipped, .handles, .forked: break
            }
        }
    }

    // MARK: The nodes' messages and replicas

    func observe(_ message: NodeMessage, from node: SimulatedNode) throws(Violation) {
        switch message {
        case .submit(let batch):
            try observe(batch, from: node)
        case .digest, .snapshot: break
        case .migrated(let migrated): note(migrated, of: node)
        case .fetch(let fetch):
            marks.hit(
                fetch.from == node.machine.live?.next ? .holeFetched : .catchUpFetched)
        default: break
        }
    }

    private func observe(_ batch: Batch, from node: SimulatedNode) throws(Violation) {
        try truth.submitted(batch, of: node.session)
        if batch.isVoid { marks.hit(.voidSubmitted) }
        if batch.firstCounter < node.submittedBelow { marks.hit(.resubmitted) }
        node.submittedBelow = batch.lastCounter + 1
    }

    func observe(_ delivery: Delivery, _ node: SimulatedNode) throws(Violation) {
        if let text = delivery.summary { trace.note(now, "  \(node.text): \(text)") }
        switch delivery {
        case .commit(let commit, _):
            if let delivered = node.delivered, commit.first != delivered.next,
                commit.first > delivered.next
            {
                throw Violation("P1", "\(node.text) delivers \(commit.first) behind \(delivered)")
            }
            node.delivered = commit.last
            try truth.delivered(commit)
        case .catchUp(let commit, _, _): try truth.delivered(commit)
        case .reset: node.delivered = nil
        case .attach:
            marks.hit(.lateStoreAttached)
            if nodes.values.contains(where: { $0 !== node && !$0.opening.isEmpty }) {
                marks.hit(.attachedBesideOthers)
            }
        case .restore(let store, let life, let snapshot, _, let aside, _, _, _):
            if aside != nil { marks.hit(.asideLoaded) }
            node.restoredAt[store] = max(node.restoredAt[store] ?? .zero, snapshot.sequence)
            if snapshot.sequence > life { marks.hit(.snapshotLoaded) }
            if life.rawValue < node.machine.incarnation.rawValue { marks.hit(.adopted) }
        case .passOver(let last):
            // A node that begins, or does not want the feed yet, lacks nothing at that point.
            if node.delivered != nil, node.machine.wantsFeed {
                marks.hit(.behindFloor)
                node.passedOver = max(node.passedOver, last)
            }
            node.delivered = last
        case .compare(_, let bytes): marks.hit(bytes == nil ? .comparedInVain : .compared)
        case .settle, .opened, .reach, .begin, .migrate: break
        }
    }

    /// Checks that the replicas of a node have the states that their stores must have.
    func compare(_ node: SimulatedNode, isFinal: Bool = false) throws(Violation) {
        for store in node.replicas
        where node.applier.place(of: store.name)?.hasBegun == true {
            truth.reach(store.position, in: store.name)
        }
        for store in node.stores {
            guard let place = node.applier.place(of: store.name) else { continue }
            guard place.hasCaughtUp else { continue }
            if let message = place.stopped { try checkStopped(store, message, node) }
            guard !place.lacksState else { continue }
            guard isFinal || node.compared[store.name] != place.position else { continue }
            // While it still has work to do, its state is not that of its position.
            if store.isLate, !node.late.isIdle { continue }
            node.compared[store.name] = place.position
            if node.spoilt.contains(store.name) {
                // The other replicas may have taken over its state meanwhile.
                let isRight = truth.branch.history(of: store.name, life: place.life)?.isRight(
                    Digest(of: store.encoded), of: store.schemaVersion, at: place.position)
                if isRight == true { node.spoilt.remove(store.name) }
                continue
            }
            try truth.check(
                store.name, life: place.life, at: place.position,
                Digest(of: store.encoded), version: store.schemaVersion, on: node.text,
                isInside: place.stopped != nil,
                isCurrentOnly: isFinal)
        }
    }

    /// The program hears the outcomes of its actions (P5, P6).
    func hearOutcomes(_ node: SimulatedNode) throws(Violation) {
        node.heardCount = node.applier.toldCount
        // An outcome counts for every store here, including one that is about to open.
        let hosted = node.hosted
        var open: [DispatchRecord] = []
        for record in node.pending {
            guard let outcome = record.handle.outcome else {
                open.append(record)
                continue
            }
            try truth.told(
                record, outcome, hosted: hosted, gone: node.gone,
                isJumped: {
                    node.mayLoseEffects || node.mayHaveMissed($0.sequence, record.target)
                },
                isStopped: node.hasStopped || node.program.fault != nil)
            trace.note(now, "  \(record.text): \(outcome.summary)")
            switch outcome {
            case .committed(let receipt), .ordered(let receipt, _):
                marks.hit(.receipt)
                if record.transaction != nil {
                    marks.hit(.transactionHeld)
                } else if record.condition != nil {
                    marks.hit(.conditionHeld)
                }
                if record.isClaim { claimed(receipt, isLock: record.isLock) }
                if record.isCancellation { marks.hit(.timerCancelled) }
                if record.lease != nil { marks.hit(.leaseUsed) }
                try checkApplied(receipt, of: record, node)
            case .failed(let error):
                if record.isCancellation { marks.hit(.timerCancelledLate) }
                if (error.reason as? RejectionReason)?.code == .locked { marks.hit(.storeLocked) }
                if error.code == .leaseLost, record.lease != nil { marks.hit(.leaseLost) }
                if let receipt = error.receipt {
                    marks.hit(error.code == .effectUnknown ? .effectUnknown : .refused)
                    // An outcome that waits for a parked store may be reported before the store has the
                    // entry.
                    if error.code == .effectUnknown, node.mayLoseEffects { break }
                    try checkApplied(receipt, of: record, node)
                } else if error.code == .conflict {
                    marks.hit(record.transaction == nil ? .conflict : .transactionConflict)
                } else if error.code == .withdrawn {
                    marks.hit(.withdrawn)
                } else if (error.reason as? RejectionReason)?.code == .otherLife {
                    marks.hit(.otherLife)
                } else if error.code == .outcomeUnknown {
                    marks.hit(.unknownOutcome)
                    try require(
                        node.hasLostSession, "P5",
                        "\(record.text) ended unknown, and its session was not lost")
                }
            }
        }
        node.pending = open
    }

    /// Checks that the effects of an action with a receipt are visible in its own node's replicas (P6).
    private func checkApplied(
        _ receipt: Receipt, of record: DispatchRecord, _ node: SimulatedNode
    ) throws(Violation) {
        guard let target = record.target, !node.hasLostHistory else { return }
        for store in node.stores where target.concerns(store.name) {
            guard let place = node.applier.place(of: store.name), place.isAttached,
                place.stopped == nil,
                let due = truth.lastChange(of: store.name, place.life, through: receipt),
                store.position < due
            else { continue }
            throw Violation(
                "P6",
                "\(record.text) has its receipt for \(receipt.sequence), and \(store.name) "
                    + "on its node is at \(store.position)")
        }
    }
}
