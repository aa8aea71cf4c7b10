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
    /// The entry at which it stopped, if that was one: before anything of it was applied.
    var stoppedAt: SequenceNumber? { get }
    /// Whether its life is over: no entry reaches it any more.
    var isDropped: Bool { get set }

    /// Puts a snapshot into the store.
    ///
    /// - Parameters:
    ///   - snapshot: The snapshot.
    ///   - version: The schema version of the program that wrote it; nil for the state's own. One
    ///     of an older version is migrated (rule 17).
    ///   - life: The life that begins with it here.
    ///   - log: The log that the life is of.
    ///   - crashes: Where is noted what the store applies from then on; nil for nowhere.
    ///   - completion: Called once, on any thread, with why it could not be done.
    func restore(
        _ snapshot: Snapshot, version: UInt32?, life: SequenceNumber, log: LogID,
        crashes: CrashRecord?, completion: @escaping @Sendable ((any Error)?) -> Void)

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
    private(set) var stoppedAt: SequenceNumber?
    /// What is known of processes that died while they applied it; nil without a journal.
    private(set) var crashes: CrashRecord?
    var isDropped = false
    private(set) var seed: UInt64 = 0
    private let route: OutboxRoute<S>
    private let restoring: Restoring
    private let encoding: (@escaping @Sendable (Result<[UInt8], any Error>?) -> Void) -> Void

    /// Puts a state of a version at a number into the store, with the mark for what follows.
    private typealias Restoring = (
        EncodedState, Int, SequenceNumber, CommitMark?,
        @escaping @Sendable ((any Error)?) -> Void
    ) -> Void

    private init(
        name: StoreName, core: StoreCore<S>, route: OutboxRoute<S>,
        restoring: @escaping Restoring,
        encoding: @escaping (@escaping @Sendable (Result<[UInt8], any Error>?) -> Void) -> Void
    ) {
        self.name = name
        self.core = core
        self.route = route
        self.restoring = restoring
        self.encoding = encoding
    }

    func restore(
        _ snapshot: Snapshot, version: UInt32? = nil, life: SequenceNumber, log: LogID,
        crashes: CrashRecord? = nil, completion: @escaping @Sendable ((any Error)?) -> Void
    ) {
        self.life = life
        route.mean(life)
        seed = ActionContext.seed(log: log, store: name)
        lastChange = snapshot.sequence
        restoredAt = snapshot.sequence
        stopped = nil
        stoppedAt = nil
        self.crashes = crashes
        isDropped = false
        isRestored = true
        restoring(
            snapshot.state, version.map { Int($0) } ?? S.schemaVersion, snapshot.sequence,
            crashes?.commitMark(), completion)
    }

    /// It takes no further entries: not this one, and none behind it. The first reason stays.
    ///
    /// - Returns: Whether it took entries until now.
    func stop(at sequence: SequenceNumber, _ message: String) -> Bool {
        guard stopped == nil else { return false }
        stopped = message
        stoppedAt = sequence
        return true
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
            restoring: { state, version, position, mark, completion in
                do {
                    let snapshot = try S.snapshot(from: state.bytes, version: version)
                    core.restore(snapshot, at: position, mark: mark) { isDone in
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
