import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// A node's process: the production machine, outbox, applier and stores, without threads.
final class SimulatedNode {
    /// The place that is filled again after a crash.
    let slot: Int
    let process: Int
    let role: Hello.Role
    var machine: ReplicaMachine
    let scope = Scope()
    let outbox: Outbox
    let applier: Applier
    let tells: Tells
    let shelf: EncodingShelf
    var bridges: [any SimulatedBridge] = []
    var stores: [any SimulatedStore] = []
    /// The stores that its applier has, or will have: those, and which it is opening or has closed and
    /// still applies to.
    var replicas: [any SimulatedStore] = []
    /// Those of them that were closed, until the applier hears it. A store of the same name that stands
    /// beside one of them was opened behind it.
    private var closing: [StoreName: any SimulatedStore] = [:]
    /// The stores that it wants to host and that are not open yet.
    var opening: Set<StoreName> = []
    /// The stores that it hosted and closed, or lost, at some time.
    var gone: Set<StoreName> = []
    var nextRequest: UInt64 = 1

    /// The jobs of the thread that applies, oldest first.
    var jobs: [ApplyJob] = []
    var isApplyScheduled = false
    var areTellsScheduled = false
    /// What the link has seen of the applier's progress.
    var seen = ApplyProgress()
    /// How many actions' outcomes were handed to the applier.
    var settledCount: UInt64 = 0
    /// Of how many actions the program heard the applier tell.
    var heardCount: UInt64 = 0
    var tickAt: Duration?
    var isPaused = false
    /// Whether it was given another one's name.
    var isMisnamed = false
    var isLeaving = false
    var deferred: [ClusterEvent] = []
    /// What is done beside what is applied, oldest first.
    var background: [@Sendable () -> Void] = []
    var isBackgroundScheduled = false
    /// Where some of its stores run, later.
    let late = SimulatedExecutor()
    var isStoreWorkScheduled = false

    /// Where it looks for the sequencer, where there are several.
    var round: AddressRound?
    /// Where the last welcome said that the feed is.
    var feed = ""
    var connection: UInt64?
    var reconnectedWhilePaused = false
    /// Frames that wait for a connection.
    var unsent: [[UInt8]] = []
    var wantsFeed = false
    var subscription: UInt64?
    /// Whether it was connected to the feed before.
    var wasSubscribed = false

    /// The entries whose effect it asked for, by question.
    var effectQuestions: [UInt64: EffectQuestion] = [:]
    /// What it waits for, by request.
    var waits: [UInt64: SimulatedWait] = [:]

    var dispatchCount = 0
    var sent = SentBatches()
    /// What it dispatched and the machine has not taken.
    var unplaced: [DispatchRecord] = []
    /// What was taken and has no outcome yet.
    var pending: [DispatchRecord] = []
    /// The last commit that was delivered, as everything must be without holes.
    var delivered: SequenceNumber?
    /// What its replicas were last compared at.
    var compared: [StoreName: SequenceNumber] = [:]
    /// Counters below it were receipted, and submitted, before. *Use*: marks.
    var announcedBelow: UInt64 = 0
    var submittedBelow: UInt64 = 0
    var sessionCount = 0
    /// The states as this process knows them.
    let states: [SimulatedState]
    /// The stores that were given another state behind everybody's back, until they are loaded anew.
    var spoilt: Set<StoreName> = []
    /// The highest number of a snapshot that each store got, and up to which the log was passed over.
    var restoredAt: [StoreName: SequenceNumber] = [:]
    var passedOver = SequenceNumber.zero
    /// Whether a store stopped here at some time.
    var hasStopped = false
    /// The entries that its former processes died of.
    let deaths: [Death]
    /// Whether something happened that makes unknown outcomes legitimate.
    var hasLostSession = false
    var hasLostHistory = false
    /// Whether a store was parked here.
    var hasParked = false

    /// What the applier tells the machine, until it is handed over. It may be told on any thread
    /// in a real node, hence the lock.
    final class Tells: Sendable {
        let inputs = Mutex<[ReplicaInput]>([])
        /// What the program wants to have withdrawn, of what was sent.
        let withdrawals = Mutex<[(index: Int, block: OutcomeBlock)]>([])
        /// Which waits have ended, and at which number; nil if it failed.
        let reached = Mutex<[(request: UInt64, sequence: SequenceNumber?)]>([])
        let work = Mutex(Work())
        let events = Mutex<[NodeEvent]>([])
    }

    /// What the applier puts down for other threads.
    struct Work {
        var posted: [ApplyJob] = []
        var background: [@Sendable () -> Void] = []
    }

    init(
        slot: Int, process: Int, role: Hello.Role, settings: ReplicaSettings, nonce: Nonce,
        limits: WireLimits, outboxBytesMax: Int, shelf: EncodingShelf, inPlaceBytesMax: Int,
        openBytesMax: Int, waitingOutcomesMax: Int,
        states: [SimulatedState], deaths: [Death], clock: @escaping () -> Duration
    ) {
        self.slot = slot
        self.process = process
        self.role = role
        self.states = states
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
            inPlaceBytesMax: inPlaceBytesMax, openBytesMax: openBytesMax,
            waitingOutcomesMax: waitingOutcomesMax,
            // Batches here are small: some are cut.
            sliceBytesMax: 200)
    }

    /// When the machine wants to be told the time. Looked at in place: a copy of the whole machine
    /// would be made at each step otherwise.
    var nextDeadline: Duration? { Self.deadline(of: &machine) }

    private static func deadline(of machine: inout ReplicaMachine) -> Duration? {
        machine.nextDeadline
    }

    /// The session that it has, or had last.
    var session: DispatchRecord.Session {
        DispatchRecord.Session(
            log: machine.log, incarnation: machine.incarnation, nonce: machine.nonce)
    }

    var text: String { "node \(slot) (process \(process))" }

    /// Whether a snapshot may have come instead of an entry, or the node ends, or lost its history,
    /// before it comes to it. An action's batch is looked at as a whole.
    func mayHaveMissed(_ sequence: SequenceNumber, _ target: Target?) -> Bool {
        hasLostHistory || passedOver >= sequence
            || restoredAt.values.contains { $0 >= sequence }
            || stores.contains { store in
                target?.concerns(store.name) == true && store.position < sequence
            }
    }

    /// Whether outcomes may be told without their effect: the history is lost, the process ends, or so
    /// many wait for a store that is parked.
    /// Whether every action has an outcome that its program was told.
    var isSettled: Bool {
        outbox.isEmpty && machine.isSettled && applier.toldCount >= settledCount
    }
    var mayLoseEffects: Bool { hasLostHistory || hasLostSession || hasParked }

    /// What every store that its applier has is of, whether the program knows it to be open or not.
    var hosted: [HostedLife] {
        replicas.compactMap { store in
            applier.place(of: store.name).map {
                HostedLife(store: store.name, life: $0.life, version: store.schemaVersion)
            }
        }
    }

    /// The program closes a store, and the applier is about to hear it.
    func noteClosing(_ store: any SimulatedStore) {
        precondition(closing[store.name] == nil, "\(store.name) is closed twice")
        closing[store.name] = store
    }

    func takeRequest() -> UInt64 {
        defer { nextRequest += 1 }
        return nextRequest
    }

    /// The applier has done a job: what it hosts no longer is none of its replicas.
    func noteEnd(by job: ApplyJob) {
        guard case .unregister(.store(let name)) = job,
            let store = closing.removeValue(forKey: name)
        else { return }
        noteEnd(of: store)
    }

    /// The applier has a store no longer.
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
