import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// A node's process: the production machine, outbox, applier and stores, without threads.
final class SimulatedNode {
    /// What its program is for.
    enum Kind {
        /// It bridges states, and opens stores.
        case worker
        /// It reads the log.
        case observer
        /// It dispatches, and has no store.
        case dispatcher

        var role: Hello.Role { self == .observer ? .observer : .member }
    }

    /// The slot, in which another process starts after a crash.
    let slot: Int
    let process: Int
    let kind: Kind
    var machine: ReplicaMachine
    let scope = Scope()
    let outbox: Outbox
    let applier: Applier
    let tells: Tells
    let shelf: EncodingShelf
    var bridges: [any SimulatedBridge] = []
    var stores: [any SimulatedStore] = []
    /// The stores that the applier has, or will have: the open ones, those that are being opened, and those
    /// that were closed while it still applies to them.
    var replicas: [any SimulatedStore] = []
    /// The closed ones among them, until the applier hears of it. Another store with the same name was opened
    /// after the closing.
    private var closing: [StoreName: any SimulatedStore] = [:]
    /// The stores that it wants to host and that are not open yet.
    var opening: Set<StoreName> = []
    /// The stores that it has hosted and then closed or lost.
    var gone: Set<StoreName> = []
    var nextRequest: UInt64 = 1

    /// The jobs of the applying thread, oldest first.
    var jobs: [ApplyJob] = []
    var isApplyScheduled = false
    var areTellsScheduled = false
    /// The applier's progress, as the link has last seen it.
    var seen = ApplyProgress()
    /// How many outcomes of actions were handed to the applier.
    var settledCount: UInt64 = 0
    /// How many outcomes the program has heard from the applier.
    var heardCount: UInt64 = 0
    var tickAt: Duration?
    var isPaused = false
    /// Whether it was given another node's name.
    var isMisnamed = false
    var isLeaving = false
    var deferred: [ClusterEvent] = []
    /// The work to do beside applying, oldest first.
    var background: [@Sendable () -> Void] = []
    var isBackgroundScheduled = false
    /// The migrations to do, apart from everything else.
    var migrations: [@Sendable () -> Void] = []
    /// The executor of the stores that run later.
    let late = SimulatedExecutor()
    var isStoreWorkScheduled = false

    /// The addresses at which it looks for the sequencer, if there are several.
    var round: AddressRound?
    /// The feed's address according to the last welcome.
    var feed = ""
    var connection: UInt64?
    var reconnectedWhilePaused = false
    /// Frames that wait for a connection.
    var unsent: [[UInt8]] = []
    var wantsFeed = false
    var subscription: UInt64?
    /// Whether it was ever connected to the feed.
    var wasSubscribed = false

    /// The questions for effects, by request.
    var effectQuestions: [UInt64: EffectQuestion] = [:]
    /// The waits, by request.
    var waits: [UInt64: SimulatedWait] = [:]

    var dispatchCount = 0
    var sent = SentBatches()
    /// Dispatched actions that the machine has not taken yet.
    var unplaced: [DispatchRecord] = []
    /// Actions that the machine has taken, without an outcome yet.
    var pending: [DispatchRecord] = []
    /// The last commit that was delivered; there must be no gaps.
    var delivered: SequenceNumber?
    /// The positions at which its replicas were last compared.
    var compared: [StoreName: SequenceNumber] = [:]
    /// Counters below it were receipted and then submitted earlier. *Use*: marks.
    var announcedBelow: UInt64 = 0
    var submittedBelow: UInt64 = 0
    var sessionCount = 0
    /// What this process runs.
    let program: Program
    /// The user's program in this process; nil if there is none.
    var run: ProgramRun?
    /// The stores that it could not open.
    var unopened: Set<StoreName> = []
    /// When it said that it is about to leave.
    var leavingSince: Duration?
    /// The stores whose states were corrupted, until they are reloaded.
    var spoilt: Set<StoreName> = []
    /// What its program saw when it looked at a store some time ago.
    var looks: [StoreName: DispatchCondition] = [:]
    /// The highest number of a snapshot that each store got, and below, the number up to which entries were passed
    /// over.
    var restoredAt: [StoreName: SequenceNumber] = [:]
    var passedOver = SequenceNumber.zero
    /// Whether a store has ever stopped here.
    var hasStopped = false
    /// The entries that former processes in this slot died of.
    let deaths: [Death]
    /// Whether something happened that makes unknown outcomes legitimate.
    var hasLostSession = false
    var hasLostHistory = false
    /// Whether a store was ever parked here.
    var hasParked = false

    /// The applier's reports, until the machine gets them. In a real node any thread may make them, hence the
    /// lock.
    final class Tells: Sendable {
        let inputs = Mutex<[ReplicaInput]>([])
        /// The sent actions that the program wants to withdraw.
        let withdrawals = Mutex<[(index: Int, block: OutcomeBlock)]>([])
        /// The waits that have ended, and the number of each; nil if the wait failed.
        let reached = Mutex<[(request: UInt64, sequence: SequenceNumber?)]>([])
        let work = Mutex(Work())
        let events = Mutex<[NodeEvent]>([])
    }

    /// Work that the applier leaves for other threads.
    struct Work {
        var posted: [ApplyJob] = []
        var background: [@Sendable () -> Void] = []
        var migrations: [@Sendable () -> Void] = []
    }

    init(
        slot: Int, process: Int, kind: Kind, settings: ReplicaSettings, nonce: Nonce,
        limits: WireLimits, outboxBytesMax: Int, shelf: EncodingShelf, inPlaceBytesMax: Int,
        openBytesMax: Int, waitingOutcomesMax: Int,
        program: Program, deaths: [Death], clock: @escaping () -> Duration
    ) {
        self.slot = slot
        self.process = process
        self.kind = kind
        self.program = program
        self.deaths = deaths
        machine = ReplicaMachine(settings: settings, nonce: nonce)
        let tells = Tells()
        outbox = Outbox(
            bytesMax: outboxBytesMax, policy: .fail, limits: limits, wake: {},
            withdrawSent: { index, block in
                tells.withdrawals.withLock { $0.append((index, block)) }
            })
        self.tells = tells
        self.shelf = shelf
        applier = Applier(
            refusalBytesMax: NodeSettings().refusalBytesMax,
            tell: { input in tells.inputs.withLock { $0.append(input) } },
            post: { job in tells.work.withLock { $0.posted.append(job) } }, clock: clock,
            announce: { event in tells.events.withLock { $0.append(event) } },
            journal: deaths.isEmpty
                ? nil
                : CrashJournal(
                    inMemoryAfter: deaths.map { ($0.store, $0.life, $0.log, $0.at) }),
            shelf: shelf,
            background: { work in tells.work.withLock { $0.background.append(work) } },
            apart: { work in tells.work.withLock { $0.migrations.append(work) } },
            inPlaceBytesMax: inPlaceBytesMax, openBytesMax: openBytesMax,
            waitingOutcomesMax: waitingOutcomesMax,
            // Batches here are small; this cuts some of them.
            sliceBytesMax: 200)
    }

    /// The machine's next deadline.
    var nextDeadline: Duration? { machine.nextDeadline }

    /// The present session, or the last one.
    var session: DispatchRecord.Session {
        DispatchRecord.Session(
            log: machine.log, incarnation: machine.incarnation, nonce: machine.nonce)
    }

    /// The states that it knows.
    var states: [SimulatedState] { program.states }

    var text: String { "node \(slot) (process \(process))" }

    /// Whether the node may never apply the entry: it got a snapshot instead, or it ends or loses its history
    /// before. An action's batch is considered as a whole.
    func mayHaveMissed(_ sequence: SequenceNumber, _ target: Target?) -> Bool {
        hasLostHistory || passedOver >= sequence
            || restoredAt.values.contains { $0 >= sequence }
            || stores.contains { store in
                target?.concerns(store.name) == true && store.position < sequence
            }
    }

    /// Whether every action has an outcome that its program was told.
    var isSettled: Bool {
        outbox.isEmpty && machine.isSettled && applier.toldCount >= settledCount
    }
    /// Whether outcomes may be told without their effect: the history is lost, the process ends, or too many
    /// outcomes wait for a parked store.
    var mayLoseEffects: Bool { hasLostHistory || hasLostSession || hasParked }

    /// The lives of all stores that the applier has, whether or not the program considers them open.
    var hosted: [HostedLife] {
        replicas.compactMap { store in
            applier.place(of: store.name).map {
                HostedLife(store: store.name, life: $0.life)
            }
        }
    }

    /// The program closes a store; the applier has yet to hear of it.
    func noteClosing(_ store: any SimulatedStore) {
        precondition(closing[store.name] == nil, "\(store.name) is closed twice")
        closing[store.name] = store
    }

    func takeRequest() -> UInt64 {
        defer { nextRequest += 1 }
        return nextRequest
    }

    /// The applier has done a job: a store that it no longer hosts is no longer a replica.
    func noteEnd(by job: ApplyJob) {
        guard case .unregister(.store(let name)) = job,
            let store = closing.removeValue(forKey: name)
        else { return }
        noteEnd(of: store)
    }

    /// The applier no longer has a store.
    func noteEnd(of store: any SimulatedStore) { replicas.removeAll { $0 === store } }

    func store(_ name: StoreName) -> (any SimulatedStore)? { stores.first { $0.name == name } }
}

/// An entry that processes died of, for a store.
struct Death: Hashable {
    var store: StoreName
    var life: SequenceNumber
    var log: LogID
    var at: SequenceNumber
}
