import Conflux
import ConfluxNode
import ConfluxProtocol
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
    /// The stores that it wants to host and that are not open yet.
    var opening: Set<StoreName> = []
    var nextRequest: UInt64 = 1

    /// The jobs of the thread that applies, oldest first.
    var jobs: [ApplyJob] = []
    var isApplyScheduled = false
    var areTellsScheduled = false
    var tickAt: Duration?
    var isPaused = false
    /// Whether it was given another one's name.
    var isMisnamed = false
    var isLeaving = false
    var deferred: [ClusterEvent] = []
    /// What is done beside what is applied, oldest first.
    var background: [@Sendable () -> Void] = []
    var isBackgroundScheduled = false

    var connection: UInt64?
    var reconnectedWhilePaused = false
    /// Frames that wait for a connection.
    var unsent: [[UInt8]] = []
    var wantsFeed = false
    var subscription: UInt64?
    /// Whether it was connected to the feed before.
    var wasSubscribed = false

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
    /// The stores that asked to be loaded anew, until they let go of what they have.
    var reloading: Set<StoreName> = []
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

    /// What the applier tells the machine, until it is handed over. It may be told on any thread
    /// in a real node, hence the lock.
    final class Tells: Sendable {
        let inputs = Mutex<[ReplicaInput]>([])
        /// What the program wants to have withdrawn, of what was sent.
        let withdrawals = Mutex<[(index: Int, block: OutcomeBlock)]>([])
        /// Which waits have ended, and at which number; nil where it failed.
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
            refusalsMax: 64, tell: { input in tells.inputs.withLock { $0.append(input) } },
            post: { job in tells.work.withLock { $0.posted.append(job) } }, clock: clock,
            announce: { event in tells.events.withLock { $0.append(event) } },
            journal: deaths.isEmpty
                ? nil
                : CrashJournal(
                    inMemoryAfter: deaths.map { ($0.store, $0.life, $0.log, $0.at) }),
            shelf: shelf,
            background: { work in tells.work.withLock { $0.background.append(work) } },
            inPlaceBytesMax: inPlaceBytesMax)
    }

    var text: String { "node \(slot) (process \(process))" }

    /// Whether a snapshot may have come instead of an entry.
    /// An action's batch is looked at as a whole.
    func mayHaveJumped(_ sequence: SequenceNumber) -> Bool {
        passedOver >= sequence || restoredAt.values.contains { $0 >= sequence }
    }

    func store(_ name: StoreName) -> (any SimulatedStore)? { stores.first { $0.name == name } }
}

/// An entry that processes died of, for a store.
struct Death: Hashable {
    var store: StoreName
    var life: SequenceNumber
    var log: LogID
    var at: SequenceNumber
}
