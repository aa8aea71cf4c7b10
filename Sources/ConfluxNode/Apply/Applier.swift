import Conflux
import ConfluxProtocol

/// What a node applies by: it decodes what is ordered and runs models and stores. A thread of its
/// own drives it (``ApplyThread``), so that user code never delays a beat; a simulation drives it
/// step by step.
///
/// Jobs come in the machine's order. What follows a commit (an outcome, the end of an open) stands
/// behind it in a line, and is told when every store has reported the commit: so an outcome means
/// that this node has applied the action (P6), also where a store has an executor of its own.
///
///     jobs ──▶ apply ──▶ line: commit │ outcome │ commit │ opened …
///                              └ waits for the runs of its stores
///
/// Confined to whoever drives it. The functions that it is given may be called on other threads.
package final class Applier {
    /// What stands in the line.
    enum Step {
        case commit(CommitRecord)
        /// A commit of a history that is lost: only its bytes count.
        case lost(CommitRecord)
        case restored(StoreName, request: UInt64, CommitRecord, aside: Bytes?)
        /// The store has everything up to where it catches up from.
        case ready(StoreName, request: UInt64)
        case passedOver(SequenceNumber)
        case dropped(StoreName)
        case outcome(ActionOutcome)
        case opened(UInt64, OpenOutcome)
        case reached(UInt64, ReachOutcome)
    }

    /// Outcome places of a batch that was submitted.
    struct Submitted {
        var firstCounter: UInt64
        var count: Int
        var block: OutcomeBlock
        /// What they concern.
        var targets: [Target]
        var lastCounter: UInt64 { firstCounter + UInt64(count) - 1 }
    }

    /// Tells the machine.
    let tell: @Sendable (ReplicaInput) -> Void
    /// Has a job performed soon, behind those that wait.
    let post: @Sendable (ApplyJob) -> Void
    /// The monotonic clock.
    private let clock: () -> Duration
    private let refusalsMax: Int
    /// Where encodings are kept for the sequencer, and for comparing.
    let shelf: EncodingShelf
    /// Runs what takes long, beside what is applied; in order, one after the other.
    let background: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// From which size on a snapshot is decoded there.
    let inPlaceBytesMax: Int
    /// Tells whoever watches the node.
    let announce: @Sendable (NodeEvent) -> Void
    /// Where stores note what they apply; nil for nowhere.
    let journal: CrashJournal?
    /// Given every commit that is delivered.
    private let tap: (@Sendable (Commit) -> Void)?

    var appliers: [Name: StateApplier] = [:]
    var registrations = RegistrationTable()
    private var waits: [UInt64: Wait] = [:]
    var line: [Step] = []
    var submitted: [Submitted] = []
    var refusals: RefusalMemory
    var ownFailures = OwnFailures()
    var ownEffects = OwnEffects()
    private var incarnation = Incarnation.none
    /// Up to it the stores that are attached have everything: what others catch up with they have, too.
    var applied = SequenceNumber.zero
    var questions = PendingQuestions()
    /// How often the history was lost, as far as the jobs here have come.
    private(set) var resets: UInt64 = 0

    /// Makes one without stores.
    ///
    /// - Parameters:
    ///   - refusalsMax: Of how many entries without an effect the reasons are kept.
    ///   - tell: Tells the machine; called on any thread.
    ///   - post: Has a job performed soon, behind those that wait; called on any thread.
    ///   - clock: The monotonic clock.
    ///   - announce: Tells whoever watches the node; called by whoever drives the applier.
    ///   - journal: Where stores note what they apply; nil for nowhere.
    ///   - shelf: Where encodings are kept.
    ///   - background: Runs functions one after the other, in order; on any thread.
    ///   - inPlaceBytesMax: The largest snapshot that is decoded without it.
    ///   - tap: Given every commit that is delivered.
    package init(
        refusalsMax: Int, tell: @escaping @Sendable (ReplicaInput) -> Void,
        post: @escaping @Sendable (ApplyJob) -> Void, clock: @escaping () -> Duration,
        announce: @escaping @Sendable (NodeEvent) -> Void = { _ in }, journal: CrashJournal? = nil,
        shelf: EncodingShelf = EncodingShelf(),
        background: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        inPlaceBytesMax: Int = SnapshotSizes.inPlaceBytesMax,
        tap: (@Sendable (Commit) -> Void)? = nil
    ) {
        self.refusalsMax = refusalsMax
        self.tell = tell
        self.post = post
        self.clock = clock
        self.announce = announce
        self.shelf = shelf
        self.background = background
        self.inPlaceBytesMax = inPlaceBytesMax
        self.journal = journal
        self.tap = tap
        refusals = RefusalMemory(countMax: refusalsMax)
    }

    /// Goes on when a store with an executor of its own has reported.
    var resume: @Sendable () -> Void {
        let post = post
        return { post(.finished) }
    }

    /// Does one job, as far as the stores here have come.
    package func perform(_ job: ApplyJob) {
        switch job {
        case .deliver(let delivery, let log): perform(delivery, log)
        case .submitted(let firstCounter, let count, let block, let targets):
            submitted.append(
                Submitted(
                    firstCounter: firstCounter, count: count, block: block, targets: targets))
        case .abandoned(let block, let count):
            block.settle(from: 0, count: count, with: .failed(.nodeClosed))
        case .register(let registration): register(registration)
        case .unregister(let subject): unregister(subject)
        case .asked(let question):
            questions.add(question, at: clock())
            answerQuestions()
        case .wait(let wait):
            guard let input = wait.input(hostedLife: { self.place(of: $0)?.life }) else {
                return wait.completion(.failure(.notHosted))
            }
            waits[wait.request] = wait
            tell(input)
        case .giveUp(let request):
            waits[request] = nil
            tell(.giveUp(request: request))
        case .decoded(let store, let request, let put):
            // It may have another snapshot by now.
            let isWanted = appliers[store.state]?.hosted(store)?.restoring == request
            put(isWanted)
            advance()
        case .finished: advance()
        case .identified(let incarnation): self.incarnation = incarnation
        case .stop: break
        }
    }

    /// Where a store here is.
    package struct ReplicaPlace {
        /// The present life; zero until it is known.
        package let life: SequenceNumber
        /// The number of the last entry that concerned it.
        package let position: SequenceNumber
        /// Whether commits apply to it; before, it catches up.
        package let isAttached: Bool
        /// Why it takes no further entries, if it does not.
        package let stopped: String?
    }

    /// - Returns: Where a store is; nil when it is not hosted here.
    package func place(of store: StoreName) -> ReplicaPlace? {
        appliers[store.state]?.hosted(store).map {
            ReplicaPlace(
                life: $0.life, position: $0.lastChange, isAttached: $0.isAttached,
                stopped: $0.stopped)
        }
    }

    func answerQuestions() {
        questions.answer(at: clock()) { isAnswered($0) }
    }

    private func perform(_ delivery: Delivery, _ log: LogID) {
        switch delivery {
        case .commit(let commit, let byteCount):
            tap?(commit)
            apply(commit, byteCount: byteCount, isCatchUp: false)
        case .catchUp(let commit, let byteCount):
            apply(commit, byteCount: byteCount, isCatchUp: true)
        case .restore(let store, let life, let snapshot, let aside, let skipped, let request):
            restore(store, life: life, snapshot, aside, skipped, request, log)
        case .begin(let store): appliers[store.state]?.hosted(store)?.isRestored = true
        case .detach(let store): appliers[store.state]?.hosted(store)?.detach()
        case .passOver(let last): line.append(.passedOver(last))
        case .compare(let divergence, let bytes): compare(divergence, with: bytes)
        case .attach(let store):
            appliers[store.state]?.hosted(store)?.isAttached = true
            answerQuestions()
        case .settle(let outcome): line.append(.outcome(outcome))
        case .opened(let request, let outcome): line.append(.opened(request, outcome))
        case .reached(let request, let outcome): line.append(.reached(request, outcome))
        case .reset:
            for applier in appliers.values { applier.detachAll() }
            // What stores on their own executors have not reported has numbers that others get.
            line = line.map { if case .commit(let record) = $0 { .lost(record) } else { $0 } }
            applied = .zero
            refusals = RefusalMemory(countMax: refusalsMax)
            ownFailures.removeAll()
            ownEffects = OwnEffects()
            journal?.forgetHistory()
            resets += 1
        }
        advance()
    }

    // MARK: Commits

    /// - Parameters:
    ///   - commit: The commit.
    ///   - byteCount: Its size, as its delivery counts.
    ///   - isCatchUp: Whether it is one that stores catch up with.
    ///   - only: The only store that it is for; nil for all that it concerns.
    func apply(
        _ commit: Commit, byteCount: Int, isCatchUp: Bool, only: StoreName? = nil
    ) {
        let record = CommitRecord(
            last: commit.last, byteCount: byteCount, isCatchUp: isCatchUp, whenDone: resume)
        for applier in appliers.values {
            applier.begin(isCatchUp: isCatchUp, only: only, incarnation)
        }
        var sequence = commit.first
        var dropped: [StoreName] = []
        var points: [SnapshotPlace] = []
        for block in commit.blocks {
            switch block {
            case .batch(let incarnation, let batch):
                add(batch, of: incarnation, from: sequence, in: commit, to: record)
            case .event(let event):
                apply(event, at: sequence, isCatchUp: isCatchUp, only: only, &dropped, &points)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        // What a process dies of now is what it applies, in whichever store.
        for applier in appliers.values { applier.endDecoding() }
        for applier in appliers.values {
            applier.flush(into: record)
            guard !applier.stops.isEmpty else { continue }
            for stop in applier.stops {
                announce(.storeStopped(stop.store, at: stop.at, message: stop.message))
                guard let life = applier.hosted(stop.store)?.life else { continue }
                tell(
                    .stopped(
                        StoppedStore(store: stop.store, life: life, sequence: stop.at),
                        resets: resets))
            }
            applier.stops.removeAll()
        }
        // Behind what the commit's batches did to the stores.
        for place in points { digest(at: place) }
        record.seal()
        line.append(.commit(record))
        for store in dropped { line.append(.dropped(store)) }
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

    func applier(of target: Target) -> StateApplier? {
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
            if !submitted.isEmpty, record.isOwn(sequence) {
                ownFailures.insert(failure, at: sequence)
            }
        }
        if !submitted.isEmpty { ownEffects.insert(record.taken) }
        applied = max(applied, record.last)
        tell(.applied(record.isCatchUp ? .zero : record.last, bytes: record.byteCount))
        answerQuestions()
    }

    // MARK: The line

    /// Goes through the line as far as the stores have come.
    private func advance() {
        var count = 0
        // A step may put others behind those that are there.
        steps: while count < line.count {
            switch line[count] {
            case .commit(let record):
                guard record.isDone else { break steps }
                finish(record)
            case .lost(let record):
                guard record.isDone else { break steps }
                tell(.applied(.zero, bytes: record.byteCount))
            case .restored(let store, let request, let record, let aside):
                guard record.isDone else { break steps }
                // It may have been given another snapshot meanwhile, or been closed.
                guard let hosted = appliers[store.state]?.hosted(store),
                    hosted.restoring == request
                else { break }
                if let failure = record.failures.first?.1 {
                    hosted.stopped =
                        "the snapshot of \(store) can't be read: \(failure.message)"
                }
                if let aside { follow(store, aside) }
                line.append(.ready(store, request: request))
            case .ready(let store, let request):
                tell(.restored(store, request: request))
            case .passedOver(let last):
                refusals.passOver(through: last)
                ownEffects.passedOver = max(ownEffects.passedOver, last)
                applied = max(applied, last)
                tell(.applied(last, bytes: 0))
            case .dropped(let store): drop(store)
            case .outcome(let outcome): settle(outcome)
            case .opened(let request, let outcome): complete(request, outcome)
            case .reached(let request, let outcome):
                waits.removeValue(forKey: request)?.completion(outcome.result)
            }
            count += 1
        }
        if count > 0 { line.removeFirst(count) }
    }

    /// Everything that is still waited for ends.
    ///
    /// - Parameter rest: The jobs that are not performed any more.
    package func finish(dropping rest: [ApplyJob]) {
        for job in rest {
            switch job {
            case .register(let registration): registration.completion(.failure(.closed))
            case .wait(let wait): wait.completion(.failure(.closed))
            default: break
            }
        }
        advance()
        for batch in submitted {
            batch.block.settle(from: 0, count: batch.count, with: .failed(.outcomeUnknown))
        }
        submitted.removeAll()
        for (registration, isOpen) in registrations.removeAll() where !isOpen {
            registration.completion(.failure(.closed))
        }
        for wait in waits.values { wait.completion(.failure(.closed)) }
        waits.removeAll()
        appliers.removeAll()
        journal?.close()
    }
}
