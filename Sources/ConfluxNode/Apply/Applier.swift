import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The part of a node that applies: it decodes ordered entries, and runs models and stores. It is
/// driven by calls, one at a time: by a thread of its own (``ApplyThread``), so that user code
/// never delays a beat, or step by step by a simulation.
///
/// Each store here has its own progress (``StoreProgress``). An outcome, an open or a drop waits
/// only for the stores that it concerns:
///
///     commit ──▶ runs ──▶ lanes ──▶ reports ──▶ position ──▶ outcomes, opens, waits
///
/// - The outcome of one of this node's actions is told once every store here that it concerns has
///   reached its number (P6). So a store that catches up, or whose executor is slow, delays only
///   its own outcomes.
/// - A wait for a number ends once all stores here have reached that number.
/// - A store whose lane has too much to do is parked: it gets no commits, and catches up later.
///
/// Confined to whoever drives it. The functions that it is given may be called on other threads.
package final class Applier {
    /// Sends an input to the machine.
    let tell: @Sendable (ReplicaInput) -> Void
    /// Posts a job, behind the jobs that wait.
    let post: @Sendable (ApplyJob) -> Void
    /// The monotonic clock.
    let clock: () -> Duration
    /// Per store: how many bytes of reasons why entries had no effect are kept.
    private let refusalBytesMax: Int
    /// Keeps encodings for the sequencer and for comparisons.
    let shelf: EncodingShelf
    /// Runs what takes long, in parallel with applying: in order, one after the other.
    let background: Background
    /// The largest snapshot that is decoded without ``background``.
    let inPlaceBytesMax: Int
    /// How many bytes a store's lane may hold before the store is parked, unless told otherwise.
    package static let openBytesMax = 16 << 20
    let openBytesMax: Int
    /// How many outcomes may wait for stores.
    package let waitingOutcomesMax: Int
    /// How many bytes of entries a store that catches up gets at once, unless told otherwise.
    package static let sliceBytesMax = 32 << 10
    let sliceBytesMax: Int
    /// Tells those who watch the node.
    let announce: @Sendable (NodeEvent) -> Void
    /// Where stores note what they apply; nil without a journal.
    let journal: CrashJournal?
    /// Gets every commit that the feed delivers.
    let tap: (@Sendable (Commit) -> Void)?
    /// Learns of outcomes.
    let meter: NodeMeter?

    var states = ByName<Name, StateStores>()
    var registrations = RegistrationTable()
    var outcomes = OutcomeTable()
    /// The waits under way, by request.
    private var waits: [UInt64: Wait] = [:]
    /// The numbers of those waits whose number is known.
    private var reaches: [UInt64: SequenceNumber] = [:]
    /// The node's present session, and the earlier sessions that still awaited outcomes when it
    /// began. *Use*: which refusals are kept with their original errors.
    private(set) var incarnations: [Incarnation] = []
    /// The number up to which the feed's commits were given to the attached stores.
    var delivered = SequenceNumber.zero
    /// The attached stores whose lanes have something to do. *Use*: the number that all of them
    /// have reached.
    var busy: [StoreProgress] = []
    /// The stores that something waits for.
    var awaited: [StoreProgress] = []
    private var questions = PendingQuestions()
    /// What stores that catch up were given and have not applied yet, in order.
    var slices: [Slice] = []
    /// Whether a job to continue with the slices is posted.
    var isGoingOn = false
    /// How far the applier has come. Whoever drives the applier passes this on to the machine.
    package internal(set) var progress = ApplyProgress()

    /// The most waits under way. *At the bound* a further one fails.
    private static let waitsMax = 1_024

    /// Makes an applier without stores.
    ///
    /// - Parameters:
    ///   - refusalBytesMax: Per store: how many bytes of reasons why entries had no effect are
    ///     kept.
    ///   - tell: Sends an input to the machine; called on any thread.
    ///   - post: Posts a job, behind the jobs that wait; called on any thread.
    ///   - clock: The monotonic clock.
    ///   - announce: Tells those who watch the node; called by whoever drives the applier.
    ///   - journal: Where stores note what they apply; nil without a journal.
    ///   - shelf: Keeps encodings.
    ///   - background: Runs functions one after the other, in order, on any thread.
    ///   - inPlaceBytesMax: The largest snapshot that is decoded without `background`.
    ///   - openBytesMax: How many bytes a store's lane may hold before the store is parked.
    ///   - waitingOutcomesMax: How many outcomes may wait for stores.
    ///   - sliceBytesMax: How many bytes of entries a store that catches up gets at once.
    ///   - tap: Gets every commit that the feed delivers.
    ///   - meter: Learns of outcomes.
    package init(
        refusalBytesMax: Int, tell: @escaping @Sendable (ReplicaInput) -> Void,
        post: @escaping @Sendable (ApplyJob) -> Void, clock: @escaping () -> Duration,
        announce: @escaping @Sendable (NodeEvent) -> Void = { _ in }, journal: CrashJournal? = nil,
        shelf: EncodingShelf = EncodingShelf(),
        background: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        inPlaceBytesMax: Int = SnapshotSizes.inPlaceBytesMax,
        openBytesMax: Int = Applier.openBytesMax, waitingOutcomesMax: Int = OutcomeTable.waitingMax,
        sliceBytesMax: Int = Applier.sliceBytesMax,
        tap: (@Sendable (Commit) -> Void)? = nil, meter: NodeMeter? = nil
    ) {
        self.refusalBytesMax = refusalBytesMax
        self.tell = tell
        self.post = post
        self.clock = clock
        self.announce = announce
        self.shelf = shelf
        self.background = background
        self.inPlaceBytesMax = inPlaceBytesMax
        self.openBytesMax = openBytesMax
        self.waitingOutcomesMax = waitingOutcomesMax
        self.sliceBytesMax = sliceBytesMax
        self.journal = journal
        self.tap = tap
        self.meter = meter
    }

    /// Performs one job, and then tells what the stores here have reached.
    package func perform(_ job: ApplyJob) {
        if !job.mayOvertake { finishSlices() }
        switch job {
        case .deliver(let delivery, let log): perform(delivery, log)
        case .goOn: goOn()
        case .submitted(let batch): outcomes.submit(batch)
        case .abandoned(let block, let count):
            block.settle(from: 0, count: count, with: .failed(.nodeClosed))
        case .register(let registration): register(registration)
        case .unregister(let subject): unregister(subject)
        case .inhabited(let state): inhabit(state)
        case .asked(let question): questions.add(question, at: clock())
        case .wait(let wait): begin(wait)
        case .giveUp(let request):
            waits[request] = nil
            reaches[request] = nil
            tell(.giveUp(request: request))
        case .reported(let subject):
            if let progress = progress(of: subject) { collect(progress) }
        case .identified(let incarnation):
            if outcomes.isEmpty { incarnations = [] }
            if incarnations.last != incarnation { incarnations.append(incarnation) }
        case .probe(let passed): passed()
        case .stop: break
        }
        advance()
    }

    private func perform(_ delivery: Delivery, _ log: LogID) {
        switch delivery {
        case .commit(let commit, let byteCount):
            tap?(commit)
            delivered = max(delivered, commit.last)
            apply(commit, to: .attached)
            progress.liveBytes += byteCount
        case .catchUp(let commit, let byteCount, let subjects):
            catchUp(commit, byteCount: byteCount, subjects)
        case .restore(
            let store, let life, let snapshot, let aside, let skipped, let through, let request):
            restore(
                store, life: life, snapshot, following: (aside, through), skipped, request, log)
        case .begin(let subject):
            guard let progress = self.progress(of: subject), progress.phase == .ready else { break }
            progress.phase = .catchingUp
        case .passOver(let last):
            // An attached store lacks the entries that are passed over, so it gets another state.
            for stores in states.values {
                for replica in stores.replicas.values where replica.isAttached {
                    replica.progress.phase = .empty
                }
                if stores.isBridged, stores.isInhabited, stores.locals.phase == .attached {
                    stores.locals.jump(through: last)
                }
            }
            delivered = max(delivered, last)
        case .compare(let divergence, let bytes): compare(divergence, with: bytes)
        case .attach(let subject):
            guard let progress = self.progress(of: subject), progress.phase == .catchingUp else {
                break
            }
            progress.phase = .attached
            if case .state = subject { noteGap(before: delivered.next, of: progress) }
            if progress.hasOpenRuns { busy.append(progress) }
        case .settle(let outcome): settle(outcome)
        case .opened(let request, let outcome): opened(request, outcome)
        case .reach(let request, .due(let sequence)):
            if waits[request] != nil { reaches[request] = sequence }
        case .reach(let request, .otherLog(let log)):
            end(request, .failure(.otherLog(log)))
        case .reach(let request, .failed(let code, let message)):
            end(request, .failure(.undecided(code, message)))
        case .reset: reset()
        }
    }

    /// The history is lost: nothing that a store here has, or is doing now, counts any more.
    private func reset() {
        for stores in states.values {
            for progress in stores.replicas.values.map(\.progress) + [stores.locals] {
                while let item = progress.takeNext() {
                    if case .outcome(let outcome) = item.goal { tellUnknown(outcome) }
                }
                progress.forget()
            }
        }
        awaited = []
        busy = []
        delivered = .zero
        progress.applied = .zero
        progress.resets += 1
        journal?.forgetHistory()
        // Numbers that these waits learned belong to the lost history.
        for request in reaches.keys.sorted() {
            guard let wait = waits[request] else { continue }
            if wait.goal.isRepeatable, let input = wait.input(hostedLife: { _ in nil }) {
                tell(input)
            } else {
                end(request, .failure(.historyLost))
            }
        }
        reaches = [:]
    }

    // MARK: Telling

    /// Tells what the stores here have reached: outcomes, opens, waits and answers.
    private func advance() {
        busy.removeAll { !$0.hasOpenRuns || $0.phase != .attached }
        let least = busy.lazy.compactMap { [delivered] in $0.position(delivered) }.min()
        progress.applied = max(progress.applied, min(delivered, least ?? delivered))
        if !awaited.isEmpty {
            for progress in awaited {
                while let item = progress.takeReached(delivered) { tell(item, progress) }
            }
            awaited.removeAll { !$0.isAwaited }
        }
        tellReached()
        questions.answer(at: clock) { isAnswered($0) }
    }

    private func tell(_ item: StoreProgress.Waiting, _ progress: StoreProgress) {
        switch item.goal {
        case .outcome(let outcome): reached(outcome)
        case .opened(let request, let outcome): complete(request, outcome)
        case .dropped: if case .store(let store) = progress.subject { drop(store) }
        }
    }

    /// Has a goal told once a store has reached a number, after the goals that wait for it already.
    func wait(
        _ goal: StoreProgress.Waiting.Goal, at sequence: SequenceNumber, _ progress: StoreProgress
    ) {
        if !progress.isAwaited { awaited.append(progress) }
        progress.wait(StoreProgress.Waiting(sequence: sequence, goal: goal))
    }

    // MARK: Waits

    private func begin(_ wait: Wait) {
        guard waits.count < Self.waitsMax else {
            let text = "the node has \(waits.count) waits under way; wait for some of them first"
            return wait.completion(.failure(.undecided(.tableFull, text)))
        }
        guard let input = wait.input(hostedLife: { self.place(of: $0)?.life }) else {
            return wait.completion(.failure(.notHosted))
        }
        waits[wait.request] = wait
        tell(input)
    }

    private func end(_ request: UInt64, _ result: Result<SequenceNumber, NodeError>) {
        waits.removeValue(forKey: request)?.completion(result)
    }

    private func tellReached() {
        guard !reaches.isEmpty else { return }
        let all = states.values.flatMap(\.progresses)
        for (request, sequence) in reaches.sorted(by: { $0.key < $1.key })
        where all.allSatisfy({ $0.hasReached(sequence, delivered) }) {
            reaches[request] = nil
            end(request, .success(sequence))
        }
    }

    // MARK: Stores

    func progress(of subject: HostingSubject) -> StoreProgress? {
        switch subject {
        case .store(let store): replica(store)?.progress
        case .state(let state): states[state]?.locals
        }
    }

    func replica(_ store: StoreName) -> Replica? { states[store.state]?.replicas[store] }

    func makeProgress(of subject: HostingSubject) -> StoreProgress {
        let post = post
        return StoreProgress(subject, refusalBytesMax: refusalBytesMax) { post(.reported($0)) }
    }

    /// Where a store here stands.
    package struct ReplicaPlace {
        /// The present life; zero until it is known.
        package let life: SequenceNumber
        /// The number of the last entry that concerned it.
        package let position: SequenceNumber
        /// Whether commits of the feed apply to it. Before that, it catches up.
        package let isAttached: Bool
        /// Whether it has a state of this history and continues from it.
        package let hasBegun: Bool
        /// Why it takes no further entries; nil if it still does.
        package let stopped: String?
    }

    /// - Returns: Where a store stands; nil when it is not hosted here.
    package func place(of store: StoreName) -> ReplicaPlace? {
        replica(store).map {
            ReplicaPlace(
                life: $0.life, position: $0.lastChange,
                isAttached: $0.isAttached || $0.progress.stop != nil,
                hasBegun: $0.progress.phase != .empty, stopped: $0.progress.stop?.message)
        }
    }

    /// Ends everything that is still waited for.
    ///
    /// - Parameter rest: The jobs that are no longer performed.
    package func finish(dropping rest: [ApplyJob]) {
        for job in rest {
            switch job {
            case .register(let registration): registration.completion(.failure(.closed))
            case .wait(let wait): wait.completion(.failure(.closed))
            default: break
            }
        }
        advance()
        for progress in awaited {
            while let item = progress.takeNext() {
                if case .outcome(let outcome) = item.goal { tellUnknown(outcome) }
            }
        }
        awaited = []
        outcomes.endAll()
        for (registration, isOpen) in registrations.removeAll() where !isOpen {
            registration.completion(.failure(.closed))
        }
        for (_, wait) in waits.sorted(by: { $0.key < $1.key }) {
            wait.completion(.failure(.closed))
        }
        waits.removeAll()
        states.removeAll()
        journal?.close()
    }
}
