import Conflux
import Synchronization
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// An applier with a store, and the commits of a log.
final class ApplierSetup {
    let applier: Applier
    /// The inputs that the machine got, and the events of the node.
    let told: Told
    let outbox = Outbox(bytesMax: 1 << 20, policy: .fail, wake: {})
    let store: Store<TallyState>
    let log = LogID(high: 1, low: 1)
    let own = Incarnation(2)
    var nextCounter: UInt64 = 1
    var nextSequence: UInt64 = 3

    final class Told: Sendable {
        let inputs = Mutex<[ReplicaInput]>([])
        let events = Mutex<[NodeEvent]>([])
        /// The work of background jobs, to be run when it is their turn.
        let background = Mutex<[@Sendable () -> Void]>([])
        /// Migrations, which end only if a test runs them.
        let apart = Mutex<[@Sendable () -> Void]>([])
        /// The jobs that were posted for the applying thread.
        let posted = Mutex<[ApplyJob]>([])
    }

    // `workBehind()` decodes snapshots that are larger than `inPlaceBytesMax`.
    init(
        executor: Executor = .immediate, journal: CrashJournal? = nil, inPlaceBytesMax: Int = .max,
        refusalBytesMax: Int = 1 << 20, openBytesMax: Int = 16 << 20,
        waitingOutcomesMax: Int = 1_024, sliceBytesMax: Int = Applier.sliceBytesMax
    ) throws {
        let told = Told()
        self.told = told
        applier = Applier(
            refusalBytesMax: refusalBytesMax,
            tell: { input in told.inputs.withLock { $0.append(input) } },
            post: { job in told.posted.withLock { $0.append(job) } }, clock: { .zero },
            announce: { event in told.events.withLock { $0.append(event) } }, journal: journal,
            background: { body in
                inPlaceBytesMax == .max
                    ? body() : told.background.withLock { $0.append(body) }
            }, apart: { body in told.apart.withLock { $0.append(body) } },
            inPlaceBytesMax: inPlaceBytesMax, openBytesMax: openBytesMax,
            waitingOutcomesMax: waitingOutcomesMax, sliceBytesMax: sliceBytesMax)
        let name = StoreName(state: try #require(Name("tally")), instance: .shared)
        applier.perform(.identified(own))
        store = Self.register(name, request: 1, executor, with: applier, outbox)
        restore(name, life: SequenceNumber(2), Self.state(0))
        deliver(.attach(.store(name)))
        deliver(.opened(request: 1, .opened(life: SequenceNumber(2))))
    }

    private static func register(
        _ name: StoreName, request: UInt64, _ executor: Executor, with applier: Applier,
        _ outbox: Outbox
    ) -> Store<TallyState> {
        let scope = Scope()
        let store = scope.run {
            Store<TallyState>(state: .init(), mutations: .init(), executor: executor)
        }
        applier.perform(
            .register(
                .store(
                    store.core, name, route: OutboxRoute(outbox: outbox, target: .store(name)),
                    initial: Array(state(0).bytes), request: request, scope: scope,
                    payloadBytesMax: 1_024, completion: { _ in })))
        return store
    }

    /// An encoded state with this count.
    static func state(_ count: Int) -> EncodedState {
        EncodedState(coding: .json, bytes: Array("{\"count\":\(count)}".utf8)[...])
    }

    /// Registers a second store of the state.
    func register(_ name: StoreName, executor: Executor = .immediate) -> Store<TallyState> {
        Self.register(name, request: 2, executor, with: applier, outbox)
    }

    /// Gives a store its initial state. From then on it catches up.
    func restore(_ store: StoreName, life: SequenceNumber, _ state: EncodedState) {
        deliver(
            .restore(
                store, life: life,
                Snapshot(sequence: life, schemaVersion: 1, state: state), in: VersionInForce(1),
                aside: nil, skipped: [],
                through: life, request: life.rawValue))
        deliver(.begin(.store(store)))
    }

    /// Runs the background jobs, and the jobs that they post.
    func workBehind() {
        let bodies = told.background.withLock { bodies in
            defer { bodies = [] }
            return bodies
        }
        for body in bodies { body() }
        while case let jobs = takePosted(), !jobs.isEmpty {
            for job in jobs { applier.perform(job) }
        }
    }

    func takePosted() -> [ApplyJob] {
        told.posted.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
    }

    func deliver(_ delivery: Delivery) {
        applier.perform(.deliver(delivery, log: log, epoch: Epoch(1)))
    }

    /// Dispatches actions that are refused, and applies them.
    ///
    /// - Returns: The handle of the first one, its counter, and its sequence number.
    func dispatchFailures(
        _ count: Int
    ) throws -> (handle: DispatchHandle, counter: UInt64, sequence: SequenceNumber) {
        let block = OutcomeBlock()
        for _ in 0..<count { _ = block.reserve() }
        let (counter, sequence) = (nextCounter, SequenceNumber(nextSequence))
        applier.perform(
            .submitted(
                SubmittedBatch(
                    firstCounter: counter, count: count, block: block,
                    spans: [
                        SubmittedBatch.Span(
                            target: try #require(Target("tally/shared")), count: count)
                    ])))
        var builder = BatchBuilder()
        for _ in 0..<count {
            builder.append(
                target: BatchTarget(
                    target: try #require(Target("tally/shared")), schemaVersion: 1,
                    coding: .json),
                payload: Array("{\"fail\":{}}".utf8))
        }
        let batch = builder.finish(firstCounter: counter, settled: 0)
        deliver(
            .commit(
                Commit(
                    log: log, epoch: Epoch(1), predecessor: Epoch(1), first: sequence,
                    count: UInt32(count), timestamp: Timestamp(0),
                    blocks: [.batch(own, batch)]), byteCount: 100))
        nextCounter += UInt64(count)
        nextSequence += UInt64(count)
        return (DispatchHandle(block: block, index: 0), counter, sequence)
    }

    func settle(_ counter: UInt64, _ count: Int, _ status: ActionOutcome.Status) {
        deliver(
            .settle(
                ActionOutcome(firstCounter: counter, count: UInt32(count), status: status)))
    }

    /// The reports that the machine got about the replicas.
    var reports: [ApplyReport] {
        told.inputs.withLock { inputs in
            inputs.compactMap {
                if case .reported(let report, resets: _) = $0 { report } else { nil }
            }
        }
    }

    func progress(of store: StoreName) throws -> StoreProgress {
        try #require(applier.progress(of: .store(store)))
    }
}
