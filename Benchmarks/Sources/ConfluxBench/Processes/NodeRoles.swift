import ConfluxLog
import ConfluxNode
import ConfluxSequencer
import Foundation
import Synchronization

/// The processes of Conflux. They use only its public interface.
enum NodeRoles {
    static func sequencer(bind: String, folder: String?, keys: KeyRing?) async throws {
        let storage: SequencerConfiguration.Storage =
            if let folder { .folder(folder, SQLiteLogSettings()) } else { .memory }
        var configuration = SequencerConfiguration(bind: bind, storage: storage)
        if let keys {
            guard let own = CurveKeyPair(secretText: keys.sequencer) else {
                throw BenchError("the sequencer's key is none")
            }
            configuration.access = .keys(own, authorized: try AuthorizedKeys(keys.authorized))
        }
        let sequencer = try Sequencer.start(configuration)
        Control.tell(.listening([sequencer.address, sequencer.feedAddress]))
        Control.tell(.ready)
        let reason = await sequencer.ended()
        throw BenchError("the sequencer ended: \(reason)")
    }

    static func producer(
        at place: Place, producer: Int, count: Int, form: OpaqueForm, payloadBytes: Int
    ) async throws {
        switch form {
        case .record:
            try await self.producer(
                at: place, producer: producer, count: count, OpaqueRecord(bytes: payloadBytes))
        case .data:
            try await self.producer(
                at: place, producer: producer, count: count, Data(bytes: payloadBytes))
        }
    }

    private static func producer<Action: OpaqueAction>(
        at place: Place, producer: Int, count: Int, _ action: Action
    ) async throws {
        try await produce(at: place, FrameState<Action>.self) { actions in
            var action = action
            var last: DispatchHandle?
            for index in 0..<count {
                action.write(producer: producer, index: index)
                last = actions.dispatch(action)
            }
            return last
        }
    }

    /// Dispatches actions one by one, once it is told to begin. The node makes the batches.
    static func produce<S: BridgedState>(
        at place: Place, _ state: S.Type,
        _ dispatch: @escaping @Sendable (Actions<S>) -> DispatchHandle?
    ) async throws {
        let node = try await Node.connect(
            to: place.address, settings: try place.nodeSettings)
        try await node.bridge(state)
        let start = begin()
        // On a new thread, which waits for room in the outbox. A task would not.
        let last = await withCheckedContinuation { continuation in
            Thread { continuation.resume(returning: dispatch(Store<S>.actions)) }.start()
        }
        let dispatched = monotonicNanoseconds()
        try await last?.receipt()
        Control.tell(
            .produced(start: start, dispatched: dispatched, settled: monotonicNanoseconds()))
        await node.close()
    }

    static func begin() -> UInt64 {
        Control.awaitStart()
        return monotonicNanoseconds()
    }

    static func replica(at place: Place, count: Int, form: OpaqueForm) async throws {
        switch form {
        case .record: try await replica(at: place, count: count, OpaqueRecord.self)
        case .data: try await replica(at: place, count: count, Data.self)
        }
    }

    private static func replica<Action: OpaqueAction>(
        at place: Place, count: Int, _ action: Action.Type
    ) async throws {
        try await replicate(
            at: place, FrameState<Action>(expected: count) { Control.tell(.replicated($0)) },
            FrameMutations())
    }

    /// Makes a state follow the log until the process ends.
    static func replicate<S: BridgedState>(
        at place: Place, _ state: S, _ mutations: S.Mutations
    ) async throws {
        let node = try await Node.connect(
            to: place.address, settings: try place.nodeSettings)
        let store = Store<S>(state: state, mutations: mutations, executor: .immediate)
        try await node.bridge(S.self)
        Control.tell(.ready)
        for await event in node.events {
            if case .closed(let message) = event { throw BenchError(message) }
        }
        withExtendedLifetime(store) {}
    }

    static func roundTrips(at place: Place, count: Int) async throws {
        let node = try await Node.connect(
            to: place.address, settings: try place.nodeSettings)
        let state = FrameState<OpaqueRecord>(expected: .max, isTimed: true)
        let store = Store<FrameState<OpaqueRecord>>(
            state: state, mutations: FrameMutations(), executor: .immediate)
        try await node.bridge(FrameState<OpaqueRecord>.self)
        _ = begin()
        let actions = Store<FrameState<OpaqueRecord>>.actions
        var action = OpaqueRecord(bytes: Role.payloadBytes)
        var applied: [UInt64] = []
        var receipt: [UInt64] = []
        for index in 0..<Role.warmUpCount + count {
            action.write(producer: 0, index: index)
            let start = monotonicNanoseconds()
            try await actions.dispatch(action).receipt()
            let end = monotonicNanoseconds()
            guard index >= Role.warmUpCount else { continue }
            applied.append(state.lastApplied - start)
            receipt.append(end - start)
        }
        Control.tell(.roundTrips(applied: applied, receipt: receipt))
        withExtendedLifetime(store) {}
        await node.close()
    }

    /// Runs several tasks, each with one action in flight.
    static func receipts(at place: Place, count: Int, inFlight: Int) async throws {
        let node = try await Node.connect(
            to: place.address, settings: try place.nodeSettings)
        try await node.bridge(FrameState<OpaqueRecord>.self)
        _ = begin()
        let times = try await withThrowingTaskGroup(of: [UInt64].self) { group in
            for producer in 0..<inFlight {
                group.addTask {
                    var action = OpaqueRecord(bytes: Role.payloadBytes)
                    var times: [UInt64] = []
                    for index in 0..<count / inFlight {
                        action.write(producer: producer, index: index)
                        let start = monotonicNanoseconds()
                        try await Store<FrameState<OpaqueRecord>>.actions.dispatch(action).receipt()
                        times.append(monotonicNanoseconds() - start)
                    }
                    return times
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        Control.tell(.times(times))
        await node.close()
    }

    /// Lets this process open many connections.
    static func raiseDescriptors() {
        var limit = rlimit()
        getrlimit(descriptorLimit, &limit)
        limit.rlim_cur = min(limit.rlim_max, 65_536)
        setrlimit(descriptorLimit, &limit)
    }

    /// Nodes that have one session each, and nothing to do.
    static func visitors(at place: Place, count: Int) async throws {
        raiseDescriptors()
        var nodes: [Node] = []
        for _ in 0..<count {
            let scope = Scope()
            let node = try await scope.run {
                let node = try await Node.connect(
                    to: place.address, settings: try place.nodeSettings)
                try await node.bridge(FrameState<OpaqueRecord>.self)
                try await Store<FrameState<OpaqueRecord>>.actions.dispatch(
                    OpaqueRecord(bytes: Role.payloadBytes)
                ).receipt()
                return node
            }
            nodes.append(node)
        }
        Control.tell(.ready)
        while true { try await Task.sleep(for: .seconds(3_600)) }
    }

    #if canImport(Glibc)
        private static let descriptorLimit = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let descriptorLimit = RLIMIT_NOFILE
    #endif

    static func busy(threads: Int) -> Never {
        for _ in 1..<max(1, threads) { Thread { spin() }.start() }
        spin()
    }

    private static func spin() -> Never {
        let number = Atomic<UInt64>(0)
        while true { number.add(1, ordering: .relaxed) }
    }
}
