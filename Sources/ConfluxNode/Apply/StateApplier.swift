import Conflux
import ConfluxProtocol

/// The stores of one state in this node, whatever the state's type is. Confined to the thread that
/// applies.
class StateApplier {
    let name: Name
    /// Whether global actions reach the stores that are not replicated, too.
    var isBridged = false
    /// The stores that stopped at an entry of the present commit.
    var stops: [Stop] = []

    /// A store that takes no further entries.
    struct Stop {
        var store: StoreName
        var at: SequenceNumber
        var message: String
    }

    init(name: Name) {
        self.name = name
    }

    /// Whether nothing here needs entries any more.
    var isIdle: Bool { preconditionFailure("overridden") }

    /// Takes those of a batch's entries that concern stores of the state.
    ///
    /// A whole batch at a time: an entry alone would cost more in finding out what the state's
    /// types are, at run time, than in being decoded.
    ///
    /// - Parameters:
    ///   - batch: The batch; entries of other states are passed over.
    ///   - first: Where its first entry stands.
    ///   - record: Told how many stores an entry goes to.
    func add(_ batch: Batch, at first: EntryPlace, to record: CommitRecord) {
        preconditionFailure("overridden")
    }

    /// What was added is decoded, and nothing is applied yet.
    func endDecoding() {
        preconditionFailure("overridden")
    }

    /// Hands what was added to the stores, as one run each.
    func flush(into record: CommitRecord) {
        preconditionFailure("overridden")
    }

    func hosted(_ name: StoreName) -> (any HostedReplica)? {
        preconditionFailure("overridden")
    }

    /// The highest number of a snapshot of its stores.
    var restoredAt: SequenceNumber { preconditionFailure("overridden") }

    /// No store is attached any more: its history is not the log's.
    func detachAll() {
        preconditionFailure("overridden")
    }

    func remove(_ name: StoreName) {
        preconditionFailure("overridden")
    }

    /// The replicas that an entry with this target concerns.
    func hosted(concernedBy target: Target) -> [any HostedReplica] {
        preconditionFailure("overridden")
    }

    /// Begins to gather runs for a commit, in a node with this incarnation; where it is for one store
    /// only, for that one.
    func begin(isCatchUp: Bool, only: StoreName?, _ own: Incarnation) {
        preconditionFailure("overridden")
    }
}

/// The stores of a state, by its type.
final class TypedStateApplier<S: BridgedState>: StateApplier {
    /// A store that gets entries of the present commit.
    private final class Run {
        let core: StoreCore<S>
        let hosted: HostedStore<S>?
        /// Random numbers of stores that are not replicated have no part in what is the same.
        let seed: UInt64
        /// Where is noted what is decoded for it.
        let decoding: DecodingMark?
        var actions: [OrderedAction<S>] = []
        var failures: [(SequenceNumber, EntryFailure)] = []

        init(_ core: StoreCore<S>, hosted: HostedStore<S>?, seed: UInt64) {
            self.core = core
            self.hosted = hosted
            self.seed = seed
            decoding = hosted?.crashes?.decoding
        }

        /// Whether the entry is for the store: it may have begun, or have it, already.
        func awaits(_ place: EntryPlace) -> Bool {
            hosted.map {
                !$0.isDropped && !$0.isFrozen
                    && ($0.stopped != nil || place.sequence > $0.lastChange)
            } ?? true
        }

        /// Whether the entry is still to be applied; from now on it is not.
        func takes(_ place: EntryPlace) -> Bool {
            guard let hosted else { return true }
            guard !hosted.isDropped, !hosted.isFrozen else { return false }
            if let message = hosted.stopped {
                failures.append((place.sequence, .stopped(message)))
                return false
            }
            guard place.sequence > hosted.lastChange else { return false }
            hosted.lastChange = place.sequence
            if hosted.skips.contains(place.sequence) {
                failures.append((place.sequence, .refused(EntrySkipped())))
                return false
            }
            return true
        }
    }

    private let scope: Scope
    private let coder: ActionCoder<S.Action>
    private var replicas: [StoreName: HostedStore<S>] = [:]
    /// The stores that get entries of the present commit, in the order in which they were concerned.
    private var runs: [Run] = []
    private var runOf: [StoreName: Run] = [:]
    private var own = Incarnation.none
    /// The only store that the commit is for; nil for all that it concerns.
    private var only: StoreName?
    /// Whether the runs of the present commit include every store of the state.
    private var hasAll = false
    private var isCatchUp = false
    /// Whether a store here notes what it applies; it spares the others the look.
    private var isNoting = false
    /// Whether there is an entry that a store here must not apply, or not even decode.
    private var isSelective = false

    init(name: Name, scope: Scope, payloadBytesMax: Int) {
        self.scope = scope
        coder = ActionCoder(sizeBytesMax: payloadBytesMax)
        super.init(name: name)
    }

    override var isIdle: Bool { !isBridged && replicas.isEmpty }

    func insert(_ hosted: HostedStore<S>) {
        replicas[hosted.name] = hosted
    }

    override func remove(_ name: StoreName) {
        replicas[name] = nil
    }

    override func hosted(_ name: StoreName) -> (any HostedReplica)? { replicas[name] }

    override var restoredAt: SequenceNumber {
        replicas.values.lazy.map(\.restoredAt).max() ?? .zero
    }

    override func detachAll() {
        // Not even what another store catches up with, until its own snapshot is there.
        for hosted in replicas.values { hosted.detach() }
    }

    override func hosted(concernedBy target: Target) -> [any HostedReplica] {
        replicas.values.filter { target.concerns($0.name) }.sorted { $0.name < $1.name }
    }

    override func begin(isCatchUp: Bool, only: StoreName?, _ own: Incarnation) {
        self.isCatchUp = isCatchUp
        self.only = only
        self.own = own
        hasAll = false
        isNoting = false
        isSelective = false
    }

    /// The run of a replica, if the commit is for it: made when it is concerned first, so that those
    /// that it does not concern cost nothing.
    private func run(of hosted: HostedStore<S>?) -> Run? {
        guard let hosted, hosted.gets(isCatchUp: isCatchUp, only: only) else { return nil }
        if let run = runOf[hosted.name] { return run }
        let run = Run(hosted.core, hosted: hosted, seed: hosted.seed)
        runs.append(run)
        runOf[hosted.name] = run
        isSelective = isSelective || !hosted.skips.isEmpty
        if let crashes = hosted.crashes {
            isNoting = true
            isSelective = isSelective || crashes.isPoisoned
        }
        return run
    }

    /// A global action reaches every store that there is, but for those that another node changes.
    private func addAll(_ log: LogID) {
        hasAll = true
        for hosted in replicas.values.sorted(by: { $0.name < $1.name }) { _ = run(of: hosted) }
        guard isBridged, !isCatchUp else { return }
        let replicated = Set(replicas.values.map { ObjectIdentifier($0.core) })
        let seed = StoreName(state: name, instance: .shared)
        for core in scope.cores(of: S.self)
        where !replicated.contains(ObjectIdentifier(core)) && !core.isRouted {
            runs.append(
                Run(core, hosted: nil, seed: ActionContext.seed(log: log, store: seed)))
        }
    }

    override func add(_ batch: Batch, at first: EntryPlace, to record: CommitRecord) {
        let concerned = batch.targets.map { runs(concernedBy: $0.target, log: first.log) }
        guard concerned.contains(where: { !$0.isEmpty }) else { return }
        // One loop with everything in it, no closure: what the types are is then asked once.
        var place = first
        for entry in batch.parsedEntries {
            let runs = concerned[entry.target]
            if !runs.isEmpty {
                let row = batch.targets[entry.target]
                if runs.count > 1 || isCatchUp, case .state = row.target {
                    let count = storeCount(runs, at: place)
                    if count > 1 { record.note(place.sequence, stores: count) }
                }
                add(entry.payload, for: row, to: runs, at: place)
            }
            place.advance()
        }
    }

    /// How many stores here an entry for the whole state is for: those that are given it now, and
    /// those that were given it before others catch up with it.
    private func storeCount(_ runs: [Run], at place: EntryPlace) -> Int {
        let former =
            isCatchUp
            ? replicas.values.count {
                $0.isAttached && !$0.isDropped && $0.life < place.sequence
            } : 0
        return former + runs.lazy.filter { $0.awaits(place) }.count
    }

    private func runs(concernedBy target: Target, log: LogID) -> [Run] {
        switch target {
        case .state(let state):
            guard state == name else { return [] }
            if !hasAll { addAll(log) }
            return runs
        case .store(let store): return run(of: replicas[store]).map { [$0] } ?? []
        case .event: return []
        }
    }

    @inline(__always)
    private func add(
        _ payload: Bytes, for row: BatchTarget, to runs: [Run], at place: EntryPlace
    ) {
        if Int(row.schemaVersion) > S.schemaVersion {
            stop(runs, at: place, version: row.schemaVersion)
            return
        }
        if isSelective, !isWanted(runs, at: place) { return }
        if isNoting { for run in runs { run.decoding?.begin(place.sequence) } }
        do {
            let action = try coder.decode(payload, as: row.coding)
            for run in runs where run.takes(place) {
                run.actions.append(
                    OrderedAction(
                        action: action,
                        context: ActionContext(
                            sequence: place.sequence, timestamp: place.timestamp,
                            origin: place.origin, seed: run.seed)))
            }
        } catch {
            for run in runs where run.takes(place) {
                run.failures.append((place.sequence, .refused(error)))
            }
        }
    }

    /// A replica that is older than an entry never skips it by itself: it stops (rule 17).
    private func stop(_ runs: [Run], at place: EntryPlace, version: UInt32) {
        for run in runs where run.awaits(place) {
            if run.hosted?.skips.contains(place.sequence) == true {
                // It says for itself why the entry has no effect.
                _ = run.takes(place)
                continue
            }
            let name = run.hosted?.name.description ?? name.text
            let message = """
                \(name) stopped at \(place.sequence): the entry has schema version \(version) and \
                this program knows \(S.schemaVersion). Run a newer program.
                """
            stop(run.hosted, at: place, message)
            run.failures.append((place.sequence, .stopped(message)))
        }
    }

    private func stop(_ hosted: HostedStore<S>?, at place: EntryPlace, _ message: String) {
        guard let hosted, hosted.stop(at: place.sequence, message) else { return }
        stops.append(Stop(store: hosted.name, at: place.sequence, message: message))
    }

    /// Stops the stores that must not apply the entry, since processes died of it (rule 23). One that
    /// is skipped is no store's: what decoding it would do is not known.
    ///
    /// - Returns: Whether any store still takes the entry: otherwise not even its payload is decoded.
    private func isWanted(_ runs: [Run], at place: EntryPlace) -> Bool {
        var isWanted = false
        for run in runs {
            let isSkipped = run.hosted?.skips.contains(place.sequence) == true
            let poison = run.hosted?.crashes?.poison
            if let poison, poison.at == place.sequence, run.awaits(place), !isSkipped {
                stop(run.hosted, at: place, poison.message)
            }
            isWanted = isWanted || (run.hosted?.stopped == nil && !isSkipped)
        }
        // Each says for itself why the entry has no effect.
        if !isWanted { for run in runs { _ = run.takes(place) } }
        return isWanted
    }

    override func endDecoding() {
        guard isNoting else { return }
        for run in runs { run.decoding?.end() }
    }

    override func flush(into record: CommitRecord) {
        for run in runs {
            // A replica's position rises with every commit; the others only need their actions.
            let isNeeded =
                run.hosted != nil || !run.actions.isEmpty || !run.failures.isEmpty
            guard isNeeded, run.hosted?.stopped == nil || !run.failures.isEmpty else { continue }
            record.expectRun()
            let actions = run.actions
            let failures = run.failures
            let through = run.hosted?.stopped == nil ? record.last : .zero
            if run.hosted != nil { noteOwn(actions, in: record) }
            let refused = run.hosted?.refused
            run.core.deliver(actions, through: through) { report in
                let all =
                    failures
                    + report.refusals.map {
                        (actions[$0.index].context.sequence, EntryFailure.refused($0.error))
                    }
                refused?.add(all.map(\.0))
                record.report(all)
            }
        }
        runs.removeAll(keepingCapacity: true)
        runOf.removeAll(keepingCapacity: true)
    }

    /// Of actions of this node it is known now what they did.
    private func noteOwn(_ actions: [OrderedAction<S>], in record: CommitRecord) {
        var ranges: [ClosedRange<SequenceNumber>] = []
        for action in actions where action.context.origin?.incarnation == own {
            let sequence = action.context.sequence
            if let last = ranges.last, last.upperBound.next == sequence {
                ranges[ranges.count - 1] = last.lowerBound...sequence
            } else {
                ranges.append(sequence...sequence)
            }
        }
        if !ranges.isEmpty { record.noteTaken(ranges) }
    }
}
