import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Encodes a copy of a state, which may take long.
typealias Encoding = @Sendable () throws -> [UInt8]

/// Runs functions one after the other, in order, while entries are applied.
typealias Background = @Sendable (@escaping @Sendable () -> Void) -> Void

/// The functions of a replicated store that the thread that applies needs, for any type of state.
struct ReplicaLane {
    /// Puts a snapshot into the state.
    typealias Putting =
        @Sendable (CommitMark?, Epoch, @escaping @Sendable (_ isDone: Bool) -> Void) -> Void

    /// The newest schema version that this program understands.
    let newestVersion: UInt32
    /// Sets the life that later dispatches are meant for.
    let mean: (SequenceNumber) -> Void
    /// Decodes a snapshot, on any thread. The result puts it in, after the lane's present work. From there on the version
    /// is in force (rule 17).
    let decode: @Sendable (Snapshot, VersionInForce) throws -> Putting
    /// Migrates a snapshot to a version, on any thread, and encodes it again. Nothing in the store changes.
    let migrate: @Sendable (Snapshot, UInt32) throws -> Digest
    /// Copies the state after the lane's present work, for an encoding as the version has it. Calls back once, in the
    /// lane; with nil if the store was released.
    let copy: (UInt32, @escaping @Sendable (Encoding?) -> Void) -> Void
}

extension ReplicaLane {
    init<S: ReplicatedState>(
        of core: StoreCore<S>, mean: @escaping (SequenceNumber) -> Void = { _ in }
    ) {
        newestVersion = UInt32(clamping: S.schemaVersion)
        self.mean = mean
        decode = { snapshot, inForce in
            let value = try S.snapshot(
                from: snapshot.state.bytes, version: Int(snapshot.schemaVersion))
            if let expected = inForce.migrated,
                Digest(of: try S.encode(value, as: Int(inForce.version))) != expected
            {
                throw StoreError(
                    .migrationFailed,
                    """
                    This program makes another state of the snapshot of \(S.name) at \(snapshot.sequence) than the \
                    programs that migrated it from schema version \(snapshot.schemaVersion) to \(inForce.version). \
                    Run the same program everywhere, and let migrate(_:from:) depend on nothing but its arguments. \
                    If that program is lost or was wrong, raise schemaVersion and oldestSchemaVersion of the \
                    correct one: then it migrates the snapshot anew.
                    """)
            }
            if snapshot.schemaVersion == inForce.version {
                try S.checkReversal(of: value, to: snapshot.state.bytes, Int(inForce.version))
            }
            return { mark, epoch, completion in
                core.restore(
                    value, at: snapshot.sequence, epoch: epoch, version: Int(inForce.version),
                    mark: mark, completion: completion)
            }
        }
        migrate = { snapshot, version in
            let value = try S.snapshot(
                from: snapshot.state.bytes, version: Int(snapshot.schemaVersion))
            return Digest(of: try S.encode(value, as: Int(version)))
        }
        copy = { version, body in
            core.inspect { state, _ in
                guard let state else { return body(nil) }
                let value = state.snapshot
                body { try S.encode(value, as: Int(version)) }
            }
        }
    }
}

/// One replicated store in this node. Confined to the thread that applies.
final class Replica {
    let name: StoreName
    let progress: StoreProgress
    private let lane: ReplicaLane
    /// The number of the last entry that concerned it.
    var lastChange = SequenceNumber.zero
    /// The record of processes that died while they applied entries of the store; nil without a journal.
    private(set) var crashes: CrashRecord?
    /// Whether its life is over, so that no entry reaches it any more.
    var isDropped = false
    /// The skipped entries above its snapshot (rule 38).
    var skips: Set<SequenceNumber> = []
    private(set) var seed: UInt64 = 0
    /// A term in which the log had the number of its snapshot.
    private var epoch = Epoch.none
    /// The schema version in force, by whose rules entries are judged (rule 17).
    private(set) var version: UInt32 = 0
    /// Whether the lane has the snapshot.
    private var hasSnapshot = false
    /// What enters the lane behind the snapshot, bit by bit.
    private var held = Line<(size: Int, work: () -> Void)>()

    init(_ name: StoreName, lane: ReplicaLane, progress: StoreProgress) {
        self.name = name
        self.lane = lane
        self.progress = progress
    }

    var life: SequenceNumber { progress.life }
    /// The newest schema version that this program understands.
    var newestVersion: UInt32 { lane.newestVersion }
    /// Migrates a snapshot, on any thread. Nothing in the store changes.
    var migrate: @Sendable (Snapshot, UInt32) throws -> Digest { lane.migrate }
    var isAttached: Bool { progress.phase == .attached }
    /// Whether it gets the feed's commits, and its lane has everything before.
    var hasCaughtUp: Bool { isAttached && hasEntered }
    /// Whether its lane got its state, and all work that was there before.
    var hasEntered: Bool { !progress.awaitsState && held.isEmpty }
    /// Whether it is frozen, so that no entry reaches it (rule 37).
    var isFrozen: Bool { progress.isAway }

    /// Begins with a snapshot. ``LaneReport/restored(request:_:)`` reports that it was put in. The store takes entries
    /// before that.
    ///
    /// - Parameters:
    ///   - snapshot: The snapshot.
    ///   - inForce: The schema version from there on.
    ///   - life: The life that it belongs to.
    ///   - log: The log of that life.
    ///   - epoch: The present term.
    ///   - request: The request that the snapshot belongs to.
    ///   - crashes: Records what the store applies from then on; nil if nothing is recorded.
    ///   - background: Decodes a large snapshot.
    ///   - loads: Decodes a snapshot that has to be migrated; nil to do it at once.
    ///   - inPlaceBytesMax: The size from which on a snapshot is large.
    func begin(
        with snapshot: Snapshot, in inForce: VersionInForce, life: SequenceNumber, log: LogID,
        epoch: Epoch, request: UInt64, crashes: CrashRecord?, background: Background,
        loads: MigrationLoads? = nil, inPlaceBytesMax: Int
    ) {
        discardHeld()
        self.epoch = epoch
        progress.begin(life: life, at: snapshot.sequence, request: request)
        lane.mean(life)
        seed = ActionContext.seed(log: log, store: name)
        lastChange = snapshot.sequence
        isDropped = false
        version = inForce.version
        self.crashes = crashes
        let (decode, reports) = (lane.decode, progress.reports)
        let migration = snapshot.schemaVersion < newestVersion ? crashes : nil
        let read: @Sendable () throws -> ReplicaLane.Putting = {
            try migration.migrating(from: snapshot.schemaVersion) { try decode(snapshot, inForce) }
        }
        if let loads, snapshot.schemaVersion < newestVersion {
            let limit = MigrationLoads.limit(for: snapshot.state.bytes.count)
            let late = StoreError(
                .migrationFailed,
                """
                migrate(_:from:) has not made a state of the snapshot of schema version \(snapshot.schemaVersion) \
                within \(limit). Does it hang?
                """)
            let isBegun = loads.run {
                reports.add(.decoded(request: request, Result { try read() }))
            }
            if isBegun {
                loads.after(limit) { reports.add(.decoded(request: request, .failure(late))) }
            } else {
                let message =
                    "Earlier migrations of this process have not ended. Correct migrate(_:from:)."
                let failure = StoreError(.migrationFailed, message)
                reports.add(.decoded(request: request, .failure(failure)))
            }
        } else if snapshot.state.bytes.count > inPlaceBytesMax {
            background { reports.add(.decoded(request: request, Result { try read() })) }
        } else {
            put(Result { try read() }, request)
        }
    }

    /// Puts a decoded snapshot into the lane, unless it is no longer awaited. What was held meanwhile enters by
    /// ``enterNext()``.
    func put(_ snapshot: Result<ReplicaLane.Putting, any Error>, _ request: UInt64) {
        guard request == progress.request, progress.awaitsState else { return }
        let reports = progress.reports
        reports.expect()
        switch snapshot {
        case .success(let put):
            put(crashes?.commitMark(), epoch) { isDone in
                reports.add(.restored(request: request, isDone ? nil : NodeError.closed))
            }
            hasSnapshot = true
        case .failure(let error): reports.add(.restored(request: request, error))
        }
    }

    // MARK: The lane's work

    /// Does something that puts work into the lane: at once, or after the snapshot and everything else that is held.
    ///
    /// - Parameters:
    ///   - size: The bytes of the entries that it applies.
    ///   - work: Puts it into the lane.
    func enter(_ size: Int, _ work: @escaping () -> Void) {
        if isEntered { work() } else { held.append((size, work)) }
    }

    /// Whether work enters the lane at once.
    var isEntered: Bool { hasSnapshot && held.isEmpty }

    /// Copies the state after the lane's present work.
    ///
    /// - Parameter body: Called once, in the lane; with nil if the store was released.
    func copy(_ body: @escaping @Sendable (Encoding?) -> Void) {
        let (copy, version) = (lane.copy, version)
        enter(0) { copy(version, body) }
    }

    /// Lets the first of what is held enter the lane, if the snapshot is there.
    ///
    /// - Parameter bytesMax: The most bytes of entries, if it is more than one piece of work.
    /// - Returns: Whether there is more to let in.
    func enterNext(bytesMax: Int) -> Bool {
        guard hasSnapshot else { return false }
        var room = bytesMax
        while let (size, work) = held.removeFirst() {
            work()
            room -= size
            guard let next = held.first, next.size <= room else { break }
        }
        return !held.isEmpty
    }

    /// Discards what is held. Nothing more enters the lane before the next snapshot.
    func discardHeld() {
        hasSnapshot = false
        held = Line()
    }
}

/// The size from which on a snapshot is decoded in the background.
package enum SnapshotSizes {
    /// Below it, to use another thread would take longer than the decoding, which takes some milliseconds.
    package static let inPlaceBytesMax = 64 << 10
}
