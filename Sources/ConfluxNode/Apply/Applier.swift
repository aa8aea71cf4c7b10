import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Decodes ordered actions, and runs models and stores. It does one job per call: a thread of its own
/// (``ApplyThread``) calls it, so that user code never delays a beat, or a simulation does, step by step.
///
/// Each store here has its own progress (``StoreProgress``). A notice waits for the stores that it
/// concerns, and for no others:
///
///     commit ──▶ runs ──▶ lanes ──▶ reports ──▶ position ──▶ outcomes, opens, waits
///
/// - The outcome of an own action is given once every store here that it concerns has reached its
///   number (P6). So a store that catches up, or whose executor is slow, delays no outcome of another.
/// - A wait for a number ends once all stores here have reached the number.
/// - A store whose lane has too much to do is parked: it gets no commits, and catches up later.
///
/// It is confined to its caller. Other threads may call the functions that it is given.
package final class Applier {
    /// Passes an input to the machine.
    let tell: @Sendable (ReplicaInput) -> Void
    /// Posts a job, after those that wait.
    let post: @Sendable (ApplyJob) -> Void
    /// The monotonic clock.
    let clock: () -> Duration
    /// How many bytes of reasons are kept for each store, for entries without effect.
    private let refusalBytesMax: Int
    /// Keeps encodings for the sequencer, and for comparison.
    let shelf: EncodingShelf
    /// Runs long tasks one after the other, in order, while entries are applied.
    let background: Background
    /// Runs tasks that may never end.
    let apart: Background
    /// Migrates the snapshots with which stores begin; nil to do that at once.
    let loads: MigrationLoads?
    /// The migrations that were given to it.
    let migrations = Migrations()
    /// The most different migrations that wait. *At the bound*, as behind one that never ends, further ones fail.
    static let migrationsMax = 16
    /// The largest snapshot that is not decoded there.
    let inPlaceBytesMax: Int
    /// The default number of bytes that a store's lane may hold before the store is parked.
    package static let openBytesMax = 16 << 20
    let openBytesMax: Int
    /// How many outcomes may wait for stores.
    package let waitingOutcomesMax: Int
    /// The default number of bytes of entries in a slice for a store that catches up.
    package static let sliceBytesMax = 32 << 10
    let sliceBytesMax: Int
    /// Notifies observers of the node.
    let announce: @Sendable (NodeEvent) -> Void
    /// Records what stores apply; nil if nothing is recorded.
    let journal: CrashJournal?
    /// Gets every delivered commit.
    let tap: (@Sendable (Commit) -> Void)?
    /// Counts outcomes.
    let meter: NodeMeter?
    /// Asks other processes for the effect of an action that is for no store here.
    let inquire: Inquire?

    var states = ByName<Name, StateStores>()
    var registrations = RegistrationTable()
    var outcomes = OutcomeTable()
    /// The waits for a number, by their requests.
    private var waits: [UInt64: Wait] = [:]
    /// The numbers of the waits whose number is known.
    private var reaches: [UInt64: SequenceNumber] = [:]
    /// The node's present session, after those whose outcomes were still awaited when it began. *Use*:
    /// the refusals of these sessions are kept as their original errors.
    private(set) var incarnations: [Incarnation] = []
    /// The last number whose commit the attached stores were given from the feed.
    var delivered = SequenceNumber.zero
    /// The attached stores whose lanes have work. *Use*: to find how far all stores are.
    var busy: [StoreProgress] = []
    /// The stores that something waits for.
    var awaited: [StoreProgress] = []
    private var questions = PendingQuestions()
    /// The slices that stores have not applied yet, in order.
    var slices = Line<Slice>()
    /// Whether a job to continue with them was posted.
    var isGoingOn = false
    /// The progress, for the machine. The caller passes it on.
    package internal(set) var progress = ApplyProgress()
    /// The term of the last delivery: the log had everything then that was delivered before.
    var epoch = Epoch.none

    /// The most waits in progress. *At the bound* a further one fails.
    private static let waitsMax = 1_024

    /// Makes an applier without stores.
    ///
    /// - Parameters:
    ///   - refusalBytesMax: How many bytes of reasons are kept for each store, for entries without
    ///     effect.
    ///   - tell: Passes an input to the machine; called on any thread.
    ///   - post: Posts a job, after those that wait; called on any thread.
    ///   - clock: The monotonic clock.
    ///   - announce: Notifies observers of the node; called by the applier's caller.
    ///   - journal: Records what stores apply; nil if nothing is recorded.
    ///   - shelf: Keeps encodings.
    ///   - background: Runs functions one after the other, in order, on any thread.
    ///   - apart: Runs functions that may never end, on any thread.
    ///   - loads: Migrates the snapshots with which stores begin; nil to do that at once.
    ///   - inPlaceBytesMax: The largest snapshot that is decoded without `background`.
    ///   - openBytesMax: How many bytes a store's lane may hold before the store is parked.
    ///   - waitingOutcomesMax: How many outcomes may wait for stores.
    ///   - sliceBytesMax: How many bytes of entries a slice has, for a store that catches up.
    ///   - tap: Gets every delivered commit.
    ///   - meter: Counts outcomes.
    ///   - inquire: Asks other processes for the effect of an action; nil if there are none.
    package init(
        refusalBytesMax: Int, tell: @escaping @Sendable (ReplicaInput) -> Void,
        post: @escaping @Sendable (ApplyJob) -> Void, clock: @escaping () -> Duration,
        announce: @escaping @Sendable (NodeEvent) -> Void = { _ in }, journal: CrashJournal? = nil,
        shelf: EncodingShelf = EncodingShelf(),
        background: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        apart: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        loads: MigrationLoads? = nil,
        inPlaceBytesMax: Int = SnapshotSizes.inPlaceBytesMax,
        openBytesMax: Int = Applier.openBytesMax, waitingOutcomesMax: Int = OutcomeTable.waitingMax,
        sliceBytesMax: Int = Applier.sliceBytesMax,
        tap: (@Sendable (Commit) -> Void)? = nil, meter: NodeMeter? = nil, inquire: Inquire? = nil
    ) {
        self.refusalBytesMax = refusalBytesMax
        self.tell = tell
        self.post = post
        self.clock = clock
        self.announce = announce
        self.shelf = shelf
        self.background = background
        self.apart = apart
        self.loads = loads
        self.inPlaceBytesMax = inPlaceBytesMax
        self.openBytesMax = openBytesMax
        self.waitingOutcomesMax = waitingOutcomesMax
        self.sliceBytesMax = sliceBytesMax
        self.journal = journal
        self.tap = tap
        self.meter = meter
        self.inquire = inquire
    }

    /// Does one job, as far as the stores' progress allows.
    package func perform(_ job: ApplyJob) {
        if !job.mayOvertake { finishSlices() }
        switch job {
        case .deliver(let delivery, let log, let epoch):
            self.epoch = epoch
            perform(delivery, log)
        case .goOn: goOn()
        case .enter(let store): enter(store)
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
        case .look(let body): body(self)
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
            tap?(commit)
            catchUp(commit, byteCount: byteCount, subjects)
        case .restore(
            let store, let life, let snapshot, let inForce, let aside, let skipped, let through,
            let request):
            restore(
                store, life: life, snapshot, in: inForce, following: (aside, through), skipped,
                request, log)
        case .migrate(let store, let life, let snapshot, let version):
            migrate(store, life: life, snapshot, to: version, log)
        case .begin(let subject):
            guard let progress = self.progress(of: subject), progress.phase == .ready else { break }
            progress.phase = .catchingUp
        case .passOver(let last):
            // An attached store lacks the entries that are passed over, and gets another state.
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

    /// Begins anew after the history was lost. Nothing that a store here has or does counts any more.
    private func reset() {
        for stores in states.values {
            for progress in stores.replicas.values.map(\.progress) + [stores.locals] {
                while let item = progress.takeNext() {
                    if case .outcome(let outcome) = item.goal { tellUnknown(outcome) }
                }
                progress.forget()
            }
            for replica in stores.replicas.values { replica.discardHeld() }
        }
        awaited = []
        busy = []
        delivered = .zero
        progress.applied = .zero
        progress.resets += 1
        journal?.forgetHistory()
        // Known numbers belong to the lost history.
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

    // MARK: Notices

    /// Gives the notices that the stores' progress allows.
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

    /// Lets a notice wait until a store has reached a number, after the notices that wait for the store already.
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

    /// The progress of a store here.
    package struct ReplicaPlace {
        /// The present life; zero until it is known.
        package let life: SequenceNumber
        /// The number of the last entry that concerned it.
        package let position: SequenceNumber
        /// Whether it gets the feed's commits. Before that, it catches up.
        package let isAttached: Bool
        /// Whether its lane has everything up to the position, too.
        package let hasCaughtUp: Bool
        /// Whether it has a state of the present history.
        package let hasBegun: Bool
        /// Why it takes no more entries; nil if it takes them.
        package let stopped: String?
        /// Whether it stopped because it could not begin with a state. What it has is not that of its position.
        package let lacksState: Bool
    }

    /// - Returns: The progress of a store; nil if it is not hosted here.
    package func place(of store: StoreName) -> ReplicaPlace? {
        replica(store).map {
            ReplicaPlace(
                life: $0.life, position: $0.lastChange,
                isAttached: $0.isAttached || $0.progress.stop != nil,
                hasCaughtUp: $0.hasCaughtUp
                    || $0.progress.stop.map { [replica = $0] in $0.at == nil || replica.hasEntered }
                        ?? false,
                hasBegun: $0.progress.phase != .empty && !$0.progress.awaitsState,
                stopped: $0.progress.stop?.message,
                lacksState: $0.progress.stop.map { $0.at == nil } ?? false)
        }
    }

    /// Ends all waits.
    ///
    /// - Parameter rest: The jobs that will not be done.
    package func finish(dropping rest: [ApplyJob]) {
        for job in rest {
            switch job {
            case .register(let registration): registration.completion(.failure(.closed))
            case .wait(let wait): wait.completion(.failure(.closed))
            case .look(let body): body(nil)
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
