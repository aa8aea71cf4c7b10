import Conflux
import ConfluxProtocol
import ConfluxZeroMQ

/// The thread that applies: it decodes what is ordered and runs models and stores, so that user
/// code never delays a beat.
///
/// Jobs come in the machine's order. What follows a commit (an outcome, the end of an open) stands
/// behind it in a line, and is told when every store has reported the commit: so an outcome means
/// that this node has applied the action (P6), also where a store has an executor of its own.
///
///     jobs ──▶ apply ──▶ line: commit │ outcome │ commit │ opened …
///                              └ waits for the runs of its stores
// Sendable: what changes is confined to the thread; other threads only post.
final class ApplyThread: @unchecked Sendable {
    /// What stands in the line.
    private enum Step {
        case commit(CommitRecord)
        case restored(StoreName, CommitRecord)
        case outcome(ActionOutcome)
        case opened(UInt64, OpenOutcome)
    }

    /// Outcome places of a batch that was submitted.
    private struct Submitted {
        var firstCounter: UInt64
        var count: Int
        var block: OutcomeBlock
        var lastCounter: UInt64 { firstCounter + UInt64(count) - 1 }
    }

    private let jobs: Mailbox<ApplyJob>
    let link: LinkPort
    private let refusalsMax: Int
    /// Given every commit that is delivered.
    private let tap: (@Sendable (Commit) -> Void)?

    var appliers: [Name: StateApplier] = [:]
    private var registrations: [UInt64: Registration] = [:]
    private var line: [Step] = []
    private var submitted: [Submitted] = []
    var refusals: RefusalMemory
    /// Why actions of this node had no effect, by number, until their outcome is told.
    private var ownFailures: [SequenceNumber: EntryFailure] = [:]
    private var incarnation = Incarnation.none
    var applied = SequenceNumber.zero
    var questions = PendingQuestions()

    init(
        jobs: Mailbox<ApplyJob>, link: LinkPort, refusalsMax: Int,
        tap: (@Sendable (Commit) -> Void)?
    ) {
        self.tap = tap
        self.jobs = jobs
        self.link = link
        self.refusalsMax = refusalsMax
        refusals = RefusalMemory(countMax: refusalsMax)
    }

    /// Works until it is told to stop.
    func run() {
        var batch: [ApplyJob] = []
        while true {
            jobs.wait(into: &batch)
            for (index, job) in batch.enumerated() {
                if case .stop = job {
                    finishAll(batch[(index + 1)...])
                    return
                }
                perform(job)
            }
            advance()
        }
    }

    private func perform(_ job: ApplyJob) {
        switch job {
        case .deliver(let delivery, let log): perform(delivery, log)
        case .submitted(let firstCounter, let count, let block):
            submitted.append(Submitted(firstCounter: firstCounter, count: count, block: block))
        case .abandoned(let block, let count):
            block.settle(from: 0, count: count, with: .failed(.nodeClosed))
        case .register(let registration):
            registrations[registration.request] = registration
            let applier = appliers[registration.state] ?? registration.makeApplier()
            appliers[registration.state] = applier
            registration.attach(applier)
            // Opens and closes reach the link by this thread alone, and so in this order.
            link.post(.machine(.open(registration.open)))
        case .unregister(let subject): unregister(subject)
        case .asked(let question):
            questions.add(question)
            answerQuestions()
        case .finished: break
        case .identified(let incarnation): self.incarnation = incarnation
        case .stop: break
        }
    }

    private func perform(_ delivery: Delivery, _ log: LogID) {
        switch delivery {
        case .commit(let commit, let byteCount):
            tap?(commit)
            apply(commit, byteCount: byteCount, isCatchUp: false)
        case .catchUp(let commit, let byteCount):
            apply(commit, byteCount: byteCount, isCatchUp: true)
        case .restore(let store, let life, let snapshot):
            restore(store, life: life, snapshot, log)
        case .attach(let store): appliers[store.state]?.hosted(store)?.isAttached = true
        case .settle(let outcome): line.append(.outcome(outcome))
        case .opened(let request, let outcome): line.append(.opened(request, outcome))
        case .reset:
            for applier in appliers.values { applier.detachAll() }
            applied = .zero
            refusals = RefusalMemory(countMax: refusalsMax)
            ownFailures.removeAll()
        }
        advance()
    }

    private func unregister(_ subject: HostingSubject) {
        // Whoever waited for it has given up.
        for (request, registration) in registrations where registration.subject == subject {
            registrations[request] = nil
        }
        switch subject {
        case .store(let store):
            appliers[store.state]?.remove(store)
            if appliers[store.state]?.isIdle == true { appliers[store.state] = nil }
        case .state(let state):
            appliers[state]?.isBridged = false
            if appliers[state]?.isIdle == true { appliers[state] = nil }
        }
        link.post(.machine(.close(subject)))
    }

    private func restore(
        _ store: StoreName, life: SequenceNumber, _ snapshot: Snapshot, _ log: LogID
    ) {
        guard let hosted = appliers[store.state]?.hosted(store) else { return }
        refusals.forget(through: snapshot.sequence)
        hosted.isAttached = false
        // What follows, the end of the open above all, waits until the store has its state.
        let jobs = jobs
        let record = CommitRecord(
            last: .zero, byteCount: 0, isCatchUp: true, whenDone: { jobs.post(.finished) })
        record.expectRun()
        hosted.restore(snapshot, life: life, log: log) { error in
            record.report(error.map { [(snapshot.sequence, .refused($0))] } ?? [])
        }
        record.seal()
        line.append(.restored(store, record))
    }

    // MARK: Commits

    private func apply(_ commit: Commit, byteCount: Int, isCatchUp: Bool) {
        let jobs = jobs
        let record = CommitRecord(
            last: commit.last, byteCount: byteCount, isCatchUp: isCatchUp,
            whenDone: { jobs.post(.finished) })
        for applier in appliers.values { applier.begin(isCatchUp: isCatchUp) }
        var sequence = commit.first
        for block in commit.blocks {
            if case .batch(let incarnation, let batch) = block {
                add(batch, of: incarnation, from: sequence, in: commit, to: record)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        for applier in appliers.values { applier.flush(into: record) }
        record.seal()
        line.append(.commit(record))
    }

    private func add(
        _ batch: Batch, of incarnation: Incarnation, from first: SequenceNumber, in commit: Commit,
        to record: CommitRecord
    ) {
        var concerned: [StateApplier] = []
        for row in batch.targets {
            if let applier = applier(of: row.target), !concerned.contains(where: { $0 === applier })
            {
                concerned.append(applier)
            }
        }
        guard !concerned.isEmpty else { return }
        if incarnation == self.incarnation {
            record.noteOwn(first...first.advanced(by: UInt64(batch.count) - 1))
        }
        let place = EntryPlace(
            log: commit.log, sequence: first, timestamp: commit.timestamp,
            origin: Origin(incarnation: incarnation, counter: batch.firstCounter))
        for applier in concerned { applier.add(batch, at: place, to: record) }
    }

    private func applier(of target: Target) -> StateApplier? {
        switch target {
        case .store(let store): appliers[store.state]
        case .state(let state): appliers[state]
        case .event: nil
        }
    }

    /// A commit is applied in every store here.
    private func finish(_ record: CommitRecord) {
        for (sequence, failure) in record.failures {
            refusals.insert(sequence, failure.message)
            if record.isOwn(sequence) { ownFailures[sequence] = failure }
        }
        if !record.isCatchUp { applied = max(applied, record.last) }
        link.post(
            .machine(.applied(record.isCatchUp ? .zero : record.last, bytes: record.byteCount)))
        answerQuestions()
    }

    // MARK: The line

    /// Goes through the line as far as the stores have come.
    private func advance() {
        var count = 0
        steps: for step in line {
            switch step {
            case .commit(let record):
                guard record.isDone else { break steps }
                finish(record)
            case .restored(let store, let record):
                guard record.isDone else { break steps }
                if let failure = record.failures.first?.1 {
                    appliers[store.state]?.hosted(store)?.stopped =
                        "the snapshot of \(store) can't be read: \(failure.message)"
                }
            case .outcome(let outcome): settle(outcome)
            case .opened(let request, let outcome): complete(request, outcome)
            }
            count += 1
        }
        if count > 0 { line.removeFirst(count) }
    }

    private func settle(_ outcome: ActionOutcome) {
        var counter = outcome.firstCounter
        let end = outcome.firstCounter + UInt64(outcome.count)
        while counter < end, let batch = submitted.first {
            let stop = min(end, batch.lastCounter + 1)
            if counter < stop {
                settle(
                    batch.block, from: Int(counter - batch.firstCounter),
                    count: Int(stop - counter), outcome, at: counter)
                counter = stop
            }
            if stop > batch.lastCounter { submitted.removeFirst() }
        }
    }

    private func settle(
        _ block: OutcomeBlock, from index: Int, count: Int, _ outcome: ActionOutcome,
        at counter: UInt64
    ) {
        switch outcome.fate {
        case .committed(let log, let first, let epoch, let timestamp):
            let start = first.advanced(by: counter - outcome.firstCounter)
            func receipt(_ offset: Int) -> Receipt {
                Receipt(
                    log: log, epoch: epoch, sequence: start.advanced(by: UInt64(offset)),
                    timestamp: timestamp)
            }
            if !ownFailures.isEmpty {
                for offset in 0..<count {
                    let receipt = receipt(offset)
                    if let failure = ownFailures.removeValue(forKey: receipt.sequence) {
                        block.settle(from: index + offset, with: .failed(failure.error(receipt)))
                    }
                }
            }
            block.settle(from: index, count: count, with: .committed(receipt(0)))
        case .rejected(let code, let message):
            block.settle(
                from: index, count: count,
                with: .failed(
                    DispatchError(
                        code: .rejected,
                        message: "The sequencer rejected the action (\(code)): \(message)",
                        reason: RejectionReason(code: code, message: message))))
        case .unknown:
            block.settle(from: index, count: count, with: .failed(.outcomeUnknown))
        }
    }

    private func complete(_ request: UInt64, _ outcome: OpenOutcome) {
        guard let registration = registrations.removeValue(forKey: request) else { return }
        switch outcome {
        case .opened(let life):
            switch registration.subject {
            case .state(let state): appliers[state]?.isBridged = true
            case .store(let store):
                if let message = appliers[store.state]?.hosted(store)?.stopped {
                    unregister(registration.subject)
                    registration.completion(
                        .failure(NodeError(code: .openFailed, message: message)))
                    return
                }
            }
            registration.completion(.success(life))
        case .failed(let code, let message):
            unregister(registration.subject)
            registration.completion(
                .failure(
                    NodeError(
                        code: .openFailed,
                        message:
                            "\(registration.subject.text) can't be opened (\(code)): \(message)")))
        }
    }

    /// Everything that is still waited for ends, also what was posted behind the end.
    private func finishAll(_ rest: ArraySlice<ApplyJob>) {
        jobs.close()
        var late: [ApplyJob] = []
        jobs.drain(into: &late)
        for job in rest + late {
            if case .register(let registration) = job { registration.completion(.failure(.closed)) }
        }
        advance()
        for batch in submitted {
            batch.block.settle(from: 0, count: batch.count, with: .failed(.outcomeUnknown))
        }
        submitted.removeAll()
        for registration in registrations.values { registration.completion(.failure(.closed)) }
        registrations.removeAll()
        appliers.removeAll()
    }
}

/// Why the sequencer did not take an action.
public struct RejectionReason: Error, Sendable, Hashable {
    /// The reason, for a program.
    public let code: RejectionCode
    /// The reason, for a person.
    public let message: String
}

extension DispatchError {
    static let outcomeUnknown = DispatchError(
        code: .outcomeUnknown,
        message: """
            The session ended before the outcome of the action was known: it may be in the log or \
            not. Look at the state before you dispatch it again.
            """)
}

extension HostingSubject {
    /// The store's or the state's name.
    var text: String {
        switch self {
        case .store(let store): store.description
        case .state(let state): state.description
        }
    }
}
