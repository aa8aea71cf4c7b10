import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Encodes a copy of a state, which may take long.
typealias Encoding = @Sendable () throws -> [UInt8]

/// Runs functions one after the other, in order, in parallel with applying.
typealias Background = @Sendable (@escaping @Sendable () -> Void) -> Void

/// What the thread that applies needs of a replicated store, whatever the type of its state.
struct ReplicaLane {
    /// Puts a snapshot into the state.
    typealias Putting =
        @Sendable (CommitMark?, @escaping @Sendable (_ isDone: Bool) -> Void) -> Void

    /// The schema version of the state in this program.
    let schemaVersion: UInt32
    /// Makes later dispatches name this life.
    let mean: (SequenceNumber) -> Void
    /// Decodes a snapshot, on any thread. The result puts the snapshot into the state, behind what
    /// the lane has.
    let decode: @Sendable (Snapshot) throws -> Putting
    /// Takes a copy of the state, behind what the lane has. Calls back once, in the lane; with nil
    /// if the store was released.
    let copy: (@escaping @Sendable (Encoding?) -> Void) -> Void
}

extension ReplicaLane {
    init<S: ReplicatedState>(of core: StoreCore<S>, route: OutboxRoute<S>) {
        schemaVersion = UInt32(clamping: S.schemaVersion)
        mean = { route.mean($0) }
        decode = { snapshot in
            let value = try S.snapshot(
                from: snapshot.state.bytes, version: Int(snapshot.schemaVersion))
            return { mark, completion in
                core.restore(value, at: snapshot.sequence, mark: mark, completion: completion)
            }
        }
        copy = { body in
            core.inspect { state, _ in
                guard let state else { return body(nil) }
                let value = state.snapshot
                body { try CanonicalCoder().encode(value) }
            }
        }
    }
}

/// One replicated store in this node. Confined to the thread that applies.
final class Replica {
    let name: StoreName
    let progress: StoreProgress
    let lane: ReplicaLane
    /// The number of the last entry that concerned it.
    var lastChange = SequenceNumber.zero
    /// What is known of processes that died while they applied entries to this store; nil without a
    /// journal.
    private(set) var crashes: CrashRecord?
    /// The number of the snapshot with which it began.
    private(set) var start = SequenceNumber.zero
    /// Whether its life is over, so that no entry reaches it any more.
    var isDropped = false
    /// The entries above its snapshot that have no effect (rule 23).
    var skips: Set<SequenceNumber> = []
    private(set) var seed: UInt64 = 0
    /// What it gets after its snapshot and before anything else, and the number up to which it then
    /// has everything.
    private(set) var following: (aside: Bytes?, through: SequenceNumber) = (nil, .zero)

    init(_ name: StoreName, lane: ReplicaLane, progress: StoreProgress) {
        self.name = name
        self.lane = lane
        self.progress = progress
    }

    var life: SequenceNumber { progress.life }
    var isAttached: Bool { progress.phase == .attached }
    /// Whether no entry reaches it until it is thawed (rule 21).
    var isFrozen: Bool { progress.isAway }

    /// Begins with a snapshot. ``LaneReport/restored(request:_:)`` reports when the snapshot is in
    /// the state.
    ///
    /// - Parameters:
    ///   - snapshot: The snapshot.
    ///   - life: The life that begins with it here.
    ///   - log: The log of that life.
    ///   - following: What the store gets after the snapshot, and the number up to which it then
    ///     has everything.
    ///   - request: The number of the request that the snapshot answers.
    ///   - crashes: Records what the store applies from then on; nil without a journal.
    ///   - background: Decodes a large snapshot.
    ///   - inPlaceBytesMax: The size above which a snapshot is large.
    func begin(
        with snapshot: Snapshot, life: SequenceNumber, log: LogID,
        following: (aside: Bytes?, through: SequenceNumber), request: UInt64,
        crashes: CrashRecord?, background: Background, inPlaceBytesMax: Int
    ) {
        progress.begin(life: life, at: snapshot.sequence, request: request)
        lane.mean(life)
        seed = ActionContext.seed(log: log, store: name)
        start = snapshot.sequence
        lastChange = snapshot.sequence
        isDropped = false
        self.crashes = crashes
        self.following = following
        let (decode, reports) = (lane.decode, progress.reports)
        if snapshot.state.bytes.count > inPlaceBytesMax {
            background {
                reports.add(.decoded(request: request, Result { try decode(snapshot) }))
            }
        } else {
            put(Result { try decode(snapshot) }, request)
        }
    }

    /// Puts a decoded snapshot into the state, unless another snapshot has replaced it meanwhile.
    func put(_ snapshot: Result<ReplicaLane.Putting, any Error>, _ request: UInt64) {
        guard request == progress.request else { return }
        let reports = progress.reports
        reports.expect()
        switch snapshot {
        case .success(let put):
            put(crashes?.commitMark()) { isDone in
                reports.add(.restored(request: request, isDone ? nil : NodeError.closed))
            }
        case .failure(let error): reports.add(.restored(request: request, error))
        }
    }

    /// The store has what follows its snapshot.
    ///
    /// - Returns: The number up to which it has everything.
    func endFollowing() -> SequenceNumber {
        defer { following = (nil, .zero) }
        return following.through
    }
}

/// The size above which a snapshot is decoded in the background.
package enum SnapshotSizes {
    /// Below this size, handing over to another thread would take longer than decoding: some
    /// milliseconds.
    package static let inPlaceBytesMax = 64 << 10
}
