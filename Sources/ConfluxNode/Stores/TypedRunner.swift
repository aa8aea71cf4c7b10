import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Decodes the entries of one state and hands them to its stores.
final class TypedRunner<S: BridgedState>: EntryRunner {
    private unowned let stores: StateStores
    private let scope: Scope
    private let coder: ActionCoder<S.Action>
    private let events = S.eventHandlers
    /// The cores of the replicated stores.
    private var cores: [StoreName: Lane] = [:]
    /// What each store gets of the present part of a commit, in the order in which entries concerned the stores. Each is a
    /// `TypedRun` of the state: see ``typed(_:)``.
    private var runs: [StoreRun] = []
    private var runOf: [StoreName: StoreRun] = [:]
    /// The first number of that part.
    private var first = SequenceNumber.zero
    private var recipients = Recipients.attached
    private var stopped: [Replica] = []
    /// The seed of the stores that are not replicated, and its log.
    private var localSeed: (log: LogID, seed: UInt64)?
    /// An empty run that is used again.
    private var spare: TypedRun<S>?
    /// Whether the present runs include every store of the state.
    private var hasAll = false
    /// Whether any store here records what it applies. Without one, nothing is recorded.
    private var isNoting = false
    /// Whether a store here has to leave out some entry, or may not even decode it.
    private var isSelective = false

    init(_ stores: StateStores, scope: Scope, payloadBytesMax: Int) {
        self.stores = stores
        self.scope = scope
        coder = ActionCoder(sizeBytesMax: payloadBytesMax)
    }

    func insert(_ core: StoreCore<S>, _ replica: Replica) {
        cores[replica.name] = core
        stores.insert(replica)
    }

    func remove(_ store: StoreName) { cores[store] = nil }

    func handles(_ event: Name) -> Bool { events?.names.contains(event) ?? false }

    func begin(at first: SequenceNumber, to recipients: Recipients) {
        self.first = first
        self.recipients = recipients
        hasAll = false
        isNoting = false
        isSelective = false
    }

    /// The run of a replica; nil if the replica gets nothing of the commit. It is made when an entry first concerns
    /// the replica, so that the other replicas cost nothing.
    private func run(of replica: Replica?) -> StoreRun? {
        guard let replica, recipients.include(replica.progress), let core = cores[replica.name]
        else { return nil }
        if let run = runOf[replica.name] { return run }
        let run = makeRun(core, replica, replica.progress, seed: replica.seed)
        runs.append(run)
        runOf[replica.name] = run
        isSelective = isSelective || !replica.skips.isEmpty
        if let crashes = replica.crashes {
            isNoting = true
            isSelective = isSelective || crashes.isPoisoned
        }
        return run
    }

    private func makeRun(
        _ lane: Lane, _ replica: Replica?, _ progress: StoreProgress, seed: UInt64
    ) -> TypedRun<S> {
        guard let spare else { return TypedRun(lane, replica, progress, seed: seed) }
        self.spare = nil
        spare.begin(lane, replica, progress, seed: seed)
        return spare
    }

    /// Adds the runs of all stores that a global action reaches: every store here, except those that another node
    /// hosts.
    private func addAll(_ log: LogID) {
        hasAll = true
        for replica in stores.replicas.values { _ = run(of: replica) }
        guard stores.isBridged, recipients.include(stores.locals) else { return }
        let replicated = Set(cores.values.map(ObjectIdentifier.init))
        let seed = seedOfLocals(log)
        let former = runs.count
        for lane in scope.lanes(of: S.self)
        where !replicated.contains(ObjectIdentifier(lane)) && !lane.isRouted {
            runs.append(makeRun(lane, nil, stores.locals, seed: seed))
        }
        if runs.count > former {
            stores.locals.comeBack(at: first)
        } else {
            stores.locals.leave(at: first)
        }
    }

    private func seedOfLocals(_ log: LogID) -> UInt64 {
        if let localSeed, localSeed.log == log { return localSeed.seed }
        let store = StoreName(state: stores.name, instance: .shared)
        let seed = ActionContext.seed(log: log, store: store)
        localSeed = (log, seed)
        return seed
    }

    func add(_ batch: Batch, at first: EntryPlace) {
        let concerned = batch.targets.map { runs(concernedBy: $0.target, log: first.log) }
        guard concerned.contains(where: { !$0.isEmpty }) else { return }
        for runs in concerned { for run in runs { run.begin(at: first.sequence) } }
        batch.entries.withUnsafeBufferPointer { add($0, of: batch, to: concerned, at: first) }
        for runs in concerned { for run in runs { run.end() } }
    }

    private func add(
        _ entries: UnsafeBufferPointer<UInt8>, of batch: Batch, to concerned: [[StoreRun]],
        at first: EntryPlace
    ) {
        let targets = batch.targets
        // What entries of the present row need. Successive entries often have the same row.
        var row = -1
        var runs: [StoreRun] = []
        var only: TypedRun<S>?
        var quick: QuickCoding<S.Action>?
        var place = first
        var position = 0
        while let head = EntryHead(entries, at: position, rows: targets.count) {
            if head.target != row {
                row = head.target
                runs = concerned[row]
                let isOlder = Int(targets[row].schemaVersion) > S.schemaVersion
                let isEvent = if case .event = targets[row].target { true } else { false }
                only =
                    runs.count == 1 && !isSelective && !isNoting && !isOlder && !isEvent
                    ? typed(runs[0]) : nil
                quick = targets[row].coding == .compact ? coder.quick : nil
                // Once for the row, so that no entry is decoded again and again because a later one can't be.
                if let only, quick == nil, only.isOpen {
                    let next = only.append(
                        entries, from: position, row: row, of: targets.count, by: coder,
                        as: targets[row].coding, at: &place)
                    if next != position {
                        position = next
                        continue
                    }
                }
            }
            if let only, let quick, only.isOpen {
                let next = only.append(
                    entries, from: position, row: row, of: targets.count, by: quick,
                    payloadBytesMax: coder.sizeBytesMax, at: &place)
                if next != position {
                    position = next
                    continue
                }
            }
            position = head.upper
            let payload = UnsafeBufferPointer(rebasing: entries[head.lower..<head.upper])
            if !runs.isEmpty { add(payload, for: targets[row], to: runs, at: place) }
            place.advance()
        }
    }

    private func runs(concernedBy target: Target, log: LogID) -> [StoreRun] {
        switch target {
        case .state(let state) where state != stores.name: return []
        case .event(_, let states) where !states.contains(stores.name): return []
        case .state, .event:
            if !hasAll { addAll(log) }
            return runs
        case .store(let store): return run(of: stores.replicas[store]).map { [$0] } ?? []
        }
    }

    @inline(never)
    private func add(
        _ payload: UnsafeBufferPointer<UInt8>, for row: BatchTarget, to runs: [StoreRun],
        at place: EntryPlace
    ) {
        if Int(row.schemaVersion) > S.schemaVersion {
            stop(runs, at: place, version: row.schemaVersion)
            return
        }
        if isSelective, !isWanted(runs, at: place) { return }
        if isNoting { for run in runs { run.decoding?.begin(place.sequence) } }
        do throws(CodingFailure) {
            let event: Name? = if case .event(let event, _) = row.target { event } else { nil }
            let action =
                if let event {
                    try events?.action(ofEvent: event, payload, as: row.coding)
                } else {
                    Optional(try coder.decode(payload, as: row.coding))
                }
            for run in runs where run.takes(place) {
                // A store of a version that does not understand the action passes its event over, as the programs of
                // that version do.
                guard let action, event == nil || S.schemaVersion(of: action) <= run.version
                else {
                    run.note(.passedOver, place)
                    continue
                }
                typed(run).append(action, place, payloadBytes: payload.count)
            }
        } catch {
            let error = S.changedForm(ofActionWith: Int(row.schemaVersion), error)
            for run in runs where run.takes(place) {
                run.note(.refused(error), place)
            }
        }
    }

    /// Stops the stores at an entry that is newer than this program: a replica never skips it by itself (rule 17).
    private func stop(_ runs: [StoreRun], at place: EntryPlace, version: UInt32) {
        for run in runs where run.awaits(place.sequence) {
            let name = run.replica?.name.description ?? stores.name.text
            let isSkipped = run.replica?.skips.contains(place.sequence) == true
            let message = """
                \(name) stopped at \(place.sequence): the entry has schema version \(version) and \
                this program knows \(S.schemaVersion). Run a newer program.
                """
            if let replica = run.replica, !isSkipped {
                stop(replica, at: place, message)
            } else if run.takes(place) {
                // A store that is not replicated can't get the state from elsewhere, so it continues.
                run.note(.notUnderstood(message: message), place)
            }
        }
    }

    private func stop(_ replica: Replica, at place: EntryPlace, _ message: String) {
        replica.progress.delivered = SequenceNumber(place.sequence.rawValue - 1)
        replica.progress.stop = (place.sequence, message)
        replica.progress.phase = .ended
        runOf[replica.name]?.isOpen = false
        stopped.append(replica)
    }

    /// Stops the stores that must not apply the entry, since processes crashed on it (rule 23). An entry that every
    /// store skips is not decoded either, since nobody knows what decoding it would do.
    ///
    /// - Returns: Whether any store still takes the entry. If not, its payload must not be decoded.
    private func isWanted(_ runs: [StoreRun], at place: EntryPlace) -> Bool {
        var isWanted = false
        for run in runs {
            let isSkipped = run.replica?.skips.contains(place.sequence) == true
            if let replica = run.replica, let poison = replica.crashes?.poison,
                poison.at == place.sequence, run.awaits(place.sequence), !isSkipped
            {
                stop(replica, at: place, poison.message)
            }
            isWanted = isWanted || (run.replica?.progress.phase != .ended && !isSkipped)
        }
        // Each run records why the entry has no effect.
        if !isWanted { for run in runs { _ = run.takes(place) } }
        return isWanted
    }

    func pass(_ replica: Replica) { _ = run(of: replica) }

    func endDecoding() {
        guard isNoting else { return }
        for run in runs { run.decoding?.end() }
    }

    func flush(
        through last: SequenceNumber, in epoch: Epoch, joining joint: inout [JointRun]?
    ) -> (given: [StoreProgress], stopped: [Replica]) {
        guard !runs.isEmpty else { return ([], []) }
        let numbers = first...last
        var given: [StoreProgress] = []
        var local: [StoreRun] = []
        for run in runs {
            guard let replica = run.replica else {
                if !typed(run).isEmpty { local.append(run) }
                continue
            }
            let progress = replica.progress
            // A store that stopped, or begins anew, is not up to date with it.
            let hasEnded = progress.phase == .ended || progress.phase == .empty
            // A replica's position rises with every commit that concerns it.
            guard !hasEnded || !typed(run).isEmpty else { continue }
            let serial = progress.beginRun(of: numbers, lanes: 1, bytes: run.bytes)
            let through = StoreVersion(
                sequence: hasEnded ? .zero : last, epoch: epoch)
            if joint != nil, replica.isEntered, typed(run).canJoin {
                joint?.append(typed(run).join(through: through, serial, to: progress.reports))
            } else {
                replica.enter(run.bytes) { [run = typed(run), reports = progress.reports] in
                    run.give(through: through, serial, to: reports)
                }
            }
            keep(run)
            given.append(progress)
        }
        if !local.isEmpty {
            let bytes = local.reduce(0) { $0 + $1.bytes }
            let serial = stores.locals.beginRun(of: numbers, lanes: local.count, bytes: bytes)
            for run in local {
                let (run, none, reports) = (
                    typed(run), StoreVersion(sequence: .zero), stores.locals.reports
                )
                if joint == nil || !run.canJoin {
                    run.give(through: none, serial, to: reports)
                } else {
                    joint?.append(run.join(through: none, serial, to: reports))
                }
                keep(run)
            }
            given.append(stores.locals)
        }
        runs.removeAll(keepingCapacity: true)
        runOf.removeAll(keepingCapacity: true)
        defer { stopped = [] }
        return (given, stopped)
    }

    /// Keeps a run for the next use, if its lane is done with it.
    private func keep(_ run: StoreRun) {
        let run = typed(run)
        if spare == nil, run.clear() { spare = run }
    }

    /// Each run here is one of the state.
    private func typed(_ run: StoreRun) -> TypedRun<S> {
        unsafeDowncast(run, to: TypedRun<S>.self)
    }
}
