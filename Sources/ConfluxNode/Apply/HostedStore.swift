import Conflux
import ConfluxProtocol

/// A replica, whatever its state's type is. Confined to the thread that applies.
protocol HostedReplica: AnyObject {
    var name: StoreName { get }
    var life: SequenceNumber { get set }
    var isAttached: Bool { get set }
    var lastChange: SequenceNumber { get }
    /// The number of its snapshot: entries up to it were not applied one by one here.
    var restoredAt: SequenceNumber { get }
    /// Why it takes no further entries, if it does not.
    var stopped: String? { get set }
    /// Whether its life is over: no entry reaches it any more.
    var isDropped: Bool { get set }

    /// Puts a snapshot into the store. The completion is called once, on any thread, with why it
    /// could not be done.
    func restore(
        _ snapshot: Snapshot, life: SequenceNumber, log: LogID,
        completion: @escaping @Sendable ((any Error)?) -> Void)

    /// Encodes the state as it is when every commit delivered so far is applied.
    ///
    /// - Parameter completion: Called once, on any thread; nil when the store was released.
    func encode(_ completion: @escaping @Sendable (Result<[UInt8], any Error>?) -> Void)
}

/// One replicated store in this node.
final class HostedStore<S: BridgedState>: HostedReplica {
    let name: StoreName
    let core: StoreCore<S>
    /// The present life of the store; zero until it is known.
    var life = SequenceNumber.zero
    /// Whether commits apply to it; before, only what it catches up with.
    var isAttached = false
    /// Whether its snapshot has been put in.
    var isRestored = false
    /// The number of the last entry that concerned it.
    var lastChange = SequenceNumber.zero
    /// The number of its snapshot.
    private(set) var restoredAt = SequenceNumber.zero
    /// Why it takes no further entries, if it does not.
    var stopped: String?
    var isDropped = false
    private(set) var seed: UInt64 = 0
    private let route: OutboxRoute<S>
    private let restoring:
        (EncodedState, SequenceNumber, @escaping @Sendable ((any Error)?) -> Void) -> Void
    private let encoding: (@escaping @Sendable (Result<[UInt8], any Error>?) -> Void) -> Void

    private init(
        name: StoreName, core: StoreCore<S>, route: OutboxRoute<S>,
        restoring:
            @escaping (EncodedState, SequenceNumber, @escaping @Sendable ((any Error)?) -> Void)
            -> Void,
        encoding: @escaping (@escaping @Sendable (Result<[UInt8], any Error>?) -> Void) -> Void
    ) {
        self.name = name
        self.core = core
        self.route = route
        self.restoring = restoring
        self.encoding = encoding
    }

    func restore(
        _ snapshot: Snapshot, life: SequenceNumber, log: LogID,
        completion: @escaping @Sendable ((any Error)?) -> Void
    ) {
        self.life = life
        route.mean(life)
        seed = ActionContext.seed(log: log, store: name)
        lastChange = snapshot.sequence
        restoredAt = snapshot.sequence
        stopped = nil
        isDropped = false
        isRestored = true
        restoring(snapshot.state, snapshot.sequence, completion)
    }

    func encode(_ completion: @escaping @Sendable (Result<[UInt8], any Error>?) -> Void) {
        encoding(completion)
    }
}

extension HostedStore where S: ReplicatedState {
    /// Makes the replica of a store.
    convenience init(_ name: StoreName, core: StoreCore<S>, route: OutboxRoute<S>) {
        let encoder = CanonicalEncoder()
        self.init(
            name: name, core: core, route: route,
            restoring: { state, position, completion in
                do {
                    let snapshot = try CanonicalDecoder().decode(S.Snapshot.self, from: state.bytes)
                    core.restore(snapshot, at: position) { isDone in
                        completion(isDone ? nil : NodeError.closed)
                    }
                } catch {
                    completion(error)
                }
            },
            encoding: { completion in
                core.inspect { state, _ in
                    guard let state else { return completion(nil) }
                    completion(Result { try encoder.encode(state.snapshot) })
                }
            })
    }
}
