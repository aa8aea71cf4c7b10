import Conflux
import ConfluxProtocol

/// A replica, whatever its state's type is. Confined to the thread that applies.
protocol HostedReplica: AnyObject {
    var name: StoreName { get }
    var life: SequenceNumber { get set }
    var isAttached: Bool { get set }
    /// Whether it has a snapshot, and gets what it catches up with.
    var isRestored: Bool { get set }
    /// Whether no entry reaches it until it is thawed (rule 21).
    var isFrozen: Bool { get set }
    /// Whether it has applied an entry that was skipped since: until it begins anew it has no vote.
    var isStale: Bool { get set }
    /// The entries above its snapshot that have no effect (rule 23).
    var skips: Set<SequenceNumber> { get set }
    /// The schema version of its state here.
    var schemaVersion: UInt32 { get }
    var lastChange: SequenceNumber { get }
    /// The number of its last digest point, or of its snapshot. *Use*: what another store catches up
    /// with passes this one again, and what its state was at a former point is not known any more.
    var lastPoint: SequenceNumber { get set }
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
    ///   - life: The life that begins with it here.
    ///   - log: The log that the life is of.
    ///   - request: Which one of its snapshots it is.
    ///   - threads: Where a large one is decoded, and how the thread that applies gets it then.
    ///   - crashes: Where is noted what the store applies from then on; nil for nowhere.
    ///   - completion: Called once, on any thread, with why it could not be done.
    func restore(
        _ snapshot: Snapshot, life: SequenceNumber, log: LogID, request: UInt64,
        in threads: ApplyThreads, crashes: CrashRecord?,
        completion: @escaping @Sendable ((any Error)?) -> Void)

    /// The request of the snapshot that it got last.
    var restoring: UInt64 { get }

    /// Nothing reaches it until it gets a snapshot.
    func detach()

    /// The digest of the numbers of the entries that had no effect.
    var refused: RefusalDigest { get }

    /// Takes a copy of the state as it is when every commit delivered so far is applied.
    ///
    /// - Parameter body: Called once, in the lane, with what encodes the copy on any thread; with nil
    ///   when the store was released.
    func copy(_ body: @escaping @Sendable (Encoding?) -> Void)
}

extension HostedReplica {
    /// Whether a commit is for it: one that the feed goes on with, or one that it catches up with.
    func gets(isCatchUp: Bool, only: StoreName?) -> Bool {
        guard let only else { return isAttached != isCatchUp && isRestored }
        return only == name
    }
}

/// Encodes a copy of a state, which may take long.
typealias Encoding = @Sendable () throws -> [UInt8]

/// Runs functions one after the other, in order, beside what is applied.
typealias Background = @Sendable (@escaping @Sendable () -> Void) -> Void

/// Beside what is applied, and behind the jobs of the thread that applies; and the size from which
/// on a snapshot is decoded beside it.
typealias ApplyThreads = (
    background: Background, post: @Sendable (ApplyJob) -> Void, inPlaceBytesMax: Int
)

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
    var lastPoint = SequenceNumber.zero
    /// The number of its snapshot.
    private(set) var restoredAt = SequenceNumber.zero
    /// Why it takes no further entries, if it does not.
    var stopped: String?
    private(set) var stoppedAt: SequenceNumber?
    /// What is known of processes that died while they applied it; nil without a journal.
    private(set) var crashes: CrashRecord?
    var isDropped = false
    var isFrozen = false
    var isStale = false
    var skips: Set<SequenceNumber> = []
    /// The entries without an effect since the last digest point.
    let refused = RefusalDigest()
    private(set) var seed: UInt64 = 0
    private(set) var restoring: UInt64 = 0
    private let route: OutboxRoute<S>
    private let decoding: Decoding
    private let copying: Copying

    /// Puts a state into the store, with the mark for what follows.
    private typealias Putting = @Sendable (CommitMark?, @escaping @Sendable (Bool) -> Void) -> Void

    /// Decodes a snapshot.
    private typealias Decoding = @Sendable (Snapshot) throws -> Putting

    /// See `copy`.
    private typealias Copying = (@escaping @Sendable (Encoding?) -> Void) -> Void

    private init(
        name: StoreName, core: StoreCore<S>, route: OutboxRoute<S>,
        decoding: @escaping Decoding, copying: @escaping Copying
    ) {
        self.name = name
        self.core = core
        self.route = route
        self.decoding = decoding
        self.copying = copying
    }

    var schemaVersion: UInt32 { UInt32(clamping: S.schemaVersion) }

    func detach() {
        isAttached = false
        isRestored = false
    }

    func restore(
        _ snapshot: Snapshot, life: SequenceNumber, log: LogID, request: UInt64,
        in threads: ApplyThreads, crashes: CrashRecord? = nil,
        completion: @escaping @Sendable ((any Error)?) -> Void
    ) {
        self.life = life
        route.mean(life)
        seed = ActionContext.seed(log: log, store: name)
        lastChange = snapshot.sequence
        lastPoint = snapshot.sequence
        restoredAt = snapshot.sequence
        stopped = nil
        stoppedAt = nil
        self.crashes = crashes
        isDropped = false
        isFrozen = false
        isStale = false
        restoring = request
        let (name, refused, decoding, mark) = (name, refused, decoding, crashes?.commitMark())
        // Decodes it; what is left is for the thread that applies.
        let decode: @Sendable () -> (@Sendable (_ isWanted: Bool) -> Void) = {
            do {
                let put = try decoding(snapshot)
                return { isWanted in
                    guard isWanted else { return completion(nil) }
                    put(mark) { isDone in
                        refused.begin()
                        completion(isDone ? nil : NodeError.closed)
                    }
                }
            } catch {
                return { _ in completion(error) }
            }
        }
        if snapshot.state.bytes.count > threads.inPlaceBytesMax {
            let post = threads.post
            threads.background { post(.decoded(name, request: request, put: decode())) }
        } else {
            decode()(true)
        }
    }

    func copy(_ body: @escaping @Sendable (Encoding?) -> Void) { copying(body) }

    /// It takes no further entries: not this one, and none behind it. The first reason stays.
    ///
    /// - Returns: Whether it took entries until now.
    func stop(at sequence: SequenceNumber, _ message: String) -> Bool {
        guard stopped == nil else { return false }
        stopped = message
        stoppedAt = sequence
        return true
    }
}

extension HostedStore where S: ReplicatedState {
    /// Makes the replica of a store.
    convenience init(_ name: StoreName, core: StoreCore<S>, route: OutboxRoute<S>) {
        self.init(
            name: name, core: core, route: route,
            decoding: { snapshot in
                let value = try S.snapshot(
                    from: snapshot.state.bytes, version: Int(snapshot.schemaVersion))
                return { mark, completion in
                    core.restore(
                        value, at: snapshot.sequence, mark: mark, completion: completion)
                }
            },
            copying: { body in
                core.inspect { state, _ in
                    guard let state else { return body(nil) }
                    let value = state.snapshot
                    body { try CanonicalEncoder().encode(value) }
                }
            })
    }
}

/// From which size on a snapshot is decoded in the background.
package enum SnapshotSizes {
    /// Below it a thread more would take longer than the decoding: some milliseconds.
    package static let inPlaceBytesMax = 64 << 10
}
