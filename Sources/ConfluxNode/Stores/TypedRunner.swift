import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Decodes the entries of one state, and hands them to its stores: the hot loop.
final class TypedRunner<S: BridgedState>: EntryRunner {
    /// A store that gets entries of the present commit.
    // Unchecked exclusivity: confined to the thread that applies, and no access lasts while another function is
    // called.
    private final class Run {
        let core: StoreCore<S>
        /// nil for a store that is not replicated.
        let replica: Replica?
        /// How far it has come: alone, or with the other local stores.
        let progress: StoreProgress
        /// Random numbers of stores that are not replicated have no part in what is the same.
        let seed: UInt64
        /// Where is noted what is decoded for it.
        let decoding: DecodingMark?
        @exclusivity(unchecked) var taken: OrderedRun<S>
        @exclusivity(unchecked) var failures: [NoEffect] = []
        /// What its lane keeps of them, about.
        @exclusivity(unchecked) var bytes = 0
        /// Whether it takes every entry of the present batch that is for it.
        @exclusivity(unchecked) var isOpen = false
        /// The last of these.
        @exclusivity(unchecked) var last = SequenceNumber.zero

        init(
            _ core: StoreCore<S>, replica: Replica?, _ progress: StoreProgress, seed: UInt64,
            _ taken: OrderedRun<S>
        ) {
            self.core = core
            self.replica = replica
            self.progress = progress
            self.seed = seed
            self.taken = taken
            decoding = replica?.crashes?.decoding
        }

        /// Whether the entry is still to be judged by the store: it may have it already, be frozen, or
        /// go no further.
        func awaits(_ sequence: SequenceNumber) -> Bool {
            guard progress.phase != .ended, sequence > progress.delivered else { return false }
            guard replica?.isFrozen != true else { return false }
            return true
        }

        /// A batch that begins there is for it.
        func begin(at first: SequenceNumber) {
            isOpen = awaits(first) && replica?.skips.isEmpty ?? true
        }

        /// What it took of a batch is known to its replica.
        func end() {
            if let replica, last != .zero { replica.lastChange = last }
        }

        /// Whether the entry is to be applied.
        @inline(__always)
        func takes(_ place: EntryPlace) -> Bool {
            if isOpen {
                last = place.sequence
                return true
            }
            return takesChecked(place)
        }

        @inline(never)
        private func takesChecked(_ place: EntryPlace) -> Bool {
            guard awaits(place.sequence) else { return false }
            last = place.sequence
            if replica?.skips.contains(place.sequence) == true {
                note(.skipped, place)
                return false
            }
            return true
        }

        func note(_ why: EntryFailure, _ place: EntryPlace) {
            failures.append(
                NoEffect(
                    sequence: place.sequence, why: why, incarnation: place.origin.incarnation))
        }

        /// The action of the entry was made in the place of ``taken``.
        @inline(__always)
        func append(_ place: EntryPlace, payloadBytes: Int) {
            bytes += payloadBytes + StoreProgress.actionBytes
            taken.append(context(of: place))
        }

        @inline(__always)
        func context(of place: EntryPlace) -> ActionContext {
            ActionContext(
                sequence: place.sequence, timestamp: place.timestamp, origin: place.origin,
                seed: seed)
        }
    }

    private unowned let stores: StateStores
    private let scope: Scope
    private let coder: ActionCoder<S.Action>
    private var cores: [StoreName: StoreCore<S>] = [:]
    /// The stores that get entries of the present commit, in the order in which they were concerned.
    private var runs: [Run] = []
    private var runOf: [StoreName: Run] = [:]
    private var commit = SequenceNumber.zero...SequenceNumber.zero
    private var recipients = Recipients.attached
    private var stopped: [Replica] = []
    /// An empty run whose room is used again.
    private var spare: OrderedRun<S>?
    /// Whether the runs of the present commit include every store of the state.
    private var hasAll = false
    /// Whether a store here notes what it applies; it spares the others the look.
    private var isNoting = false
    /// Whether there is an entry that a store here must not apply, or not even decode.
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

    func begin(_ commit: ClosedRange<SequenceNumber>, to recipients: Recipients) {
        self.commit = commit
        self.recipients = recipients
        hasAll = false
        isNoting = false
        isSelective = false
    }

    /// The run of a replica, if the commit is for it: made when it is concerned first, so that those
    /// that it does not concern cost nothing.
    private func run(of replica: Replica?) -> Run? {
        guard let replica, recipients.include(replica.progress), let core = cores[replica.name]
        else { return nil }
        if let run = runOf[replica.name] { return run }
        let run = Run(core, replica: replica, replica.progress, seed: replica.seed, takeSpare())
        runs.append(run)
        runOf[replica.name] = run
        isSelective = isSelective || !replica.skips.isEmpty
        if let crashes = replica.crashes {
            isNoting = true
            isSelective = isSelective || crashes.isPoisoned
        }
        return run
    }

    private func takeSpare() -> OrderedRun<S> {
        defer { spare = nil }
        return spare ?? OrderedRun()
    }

    /// A global action reaches every store that there is, but for those that another node changes.
    private func addAll(_ log: LogID) {
        hasAll = true
        for replica in stores.replicas.values { _ = run(of: replica) }
        guard stores.isBridged, recipients.include(stores.locals) else { return }
        let replicated = Set(
            stores.replicas.values.compactMap { cores[$0.name].map(ObjectIdentifier.init) })
        let seed = StoreName(state: stores.name, instance: .shared)
        let former = runs.count
        for core in scope.cores(of: S.self)
        where !replicated.contains(ObjectIdentifier(core)) && !core.isRouted {
            runs.append(
                Run(
                    core, replica: nil, stores.locals,
                    seed: ActionContext.seed(log: log, store: seed), takeSpare()))
        }
        if runs.count > former {
            stores.locals.comeBack(at: commit.lowerBound)
        } else {
            stores.locals.leave(at: commit.lowerBound)
        }
    }

    func add(_ batch: Batch, at first: EntryPlace) {
        let concerned = batch.targets.map { runs(concernedBy: $0.target, log: first.log) }
        guard concerned.contains(where: { !$0.isEmpty }) else { return }
        for runs in concerned { for run in runs { run.begin(at: first.sequence) } }
        batch.entries.withUnsafeBufferPointer { add($0, of: batch, to: concerned, at: first) }
        for runs in concerned { for run in runs { run.end() } }
    }

    private func add(
        _ entries: UnsafeBufferPointer<UInt8>, of batch: Batch, to concerned: [[Run]],
        at first: EntryPlace
    ) {
        let targets = batch.targets
        // What entries of the present row need; they often have the same.
        var row = -1
        var runs: [Run] = []
        var only: Run?
        var quick: QuickCoding<S.Action>?
        var place = first
        var position = 0
        while let head = EntryHead(entries, at: position, rows: targets.count) {
            if head.target != row {
                row = head.target
                runs = concerned[row]
                let isOlder = Int(targets[row].schemaVersion) > S.schemaVersion
                only = runs.count == 1 && !isSelective && !isNoting && !isOlder ? runs[0] : nil
                quick = targets[row].coding == .compact ? coder.quick : nil
            }
            if let only, let quick, only.isOpen {
                let next = add(
                    entries, from: position, row, of: targets.count, to: only, only.taken, quick,
                    at: &place)
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

    /// Most entries: those of one row, for one store that takes each of them. What the types are is asked once for
    /// all of them, and no reference is counted for one.
    ///
    /// - Returns: The position of the first entry that needs more than that.
    private func add(
        _ entries: UnsafeBufferPointer<UInt8>, from start: Int, _ row: Int, of rows: Int,
        to run: Run, _ taken: OrderedRun<S>, _ quick: QuickCoding<S.Action>,
        at place: inout EntryPlace
    ) -> Int {
        var position = start
        while let head = EntryHead(entries, at: position, rows: rows), head.target == row {
            let payload = UnsafeBufferPointer(rebasing: entries[head.lower..<head.upper])
            guard payload.count <= coder.sizeBytesMax, quick.read(payload, into: taken.place())
            else { break }
            run.last = place.sequence
            run.bytes += payload.count + StoreProgress.actionBytes
            taken.append(run.context(of: place))
            place.advance()
            position = head.upper
        }
        return position
    }

    private func runs(concernedBy target: Target, log: LogID) -> [Run] {
        switch target {
        case .state(let state):
            guard state == stores.name else { return [] }
            if !hasAll { addAll(log) }
            return runs
        case .store(let store): return run(of: stores.replicas[store]).map { [$0] } ?? []
        case .event: return []
        }
    }

    @inline(never)
    private func add(
        _ payload: UnsafeBufferPointer<UInt8>, for row: BatchTarget, to runs: [Run],
        at place: EntryPlace
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
                run.taken.place().initialize(to: action)
                run.append(place, payloadBytes: payload.count)
            }
        } catch {
            for run in runs where run.takes(place) {
                run.note(.refused(error), place)
            }
        }
    }

    /// A replica that is older than an entry never skips it by itself: it stops (rule 17).
    private func stop(_ runs: [Run], at place: EntryPlace, version: UInt32) {
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
                // A store that is not replicated has no state that it could get instead: it continues.
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

    /// Stops the stores that must not apply the entry, since processes died of it (rule 23). One that
    /// is skipped is no store's: what decoding it would do is not known.
    ///
    /// - Returns: Whether any store still takes the entry: otherwise not even its payload is decoded.
    private func isWanted(_ runs: [Run], at place: EntryPlace) -> Bool {
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
        // Each says for itself why the entry has no effect.
        if !isWanted { for run in runs { _ = run.takes(place) } }
        return isWanted
    }

    func endDecoding() {
        guard isNoting else { return }
        for run in runs { run.decoding?.end() }
    }

    func flush() -> (given: [StoreProgress], stopped: [Replica]) {
        guard !runs.isEmpty else { return ([], []) }
        var given: [StoreProgress] = []
        var local: [Run] = []
        for run in runs {
            guard let replica = run.replica else {
                if run.taken.count > 0 || !run.failures.isEmpty { local.append(run) }
                continue
            }
            let progress = replica.progress
            let hasEnded = progress.phase == .ended
            // A replica's position rises with every commit that concerns it.
            guard !hasEnded || run.taken.count > 0 || !run.failures.isEmpty else { continue }
            let serial = progress.beginRun(of: commit, lanes: 1, bytes: run.bytes)
            deliver(run, through: hasEnded ? .zero : commit.upperBound, serial, progress.reports)
            keep(run)
            given.append(progress)
        }
        if !local.isEmpty {
            let bytes = local.reduce(0) { $0 + $1.bytes }
            let serial = stores.locals.beginRun(of: commit, lanes: local.count, bytes: bytes)
            for run in local {
                deliver(run, through: .zero, serial, stores.locals.reports)
                keep(run)
            }
            given.append(stores.locals)
        }
        runs.removeAll(keepingCapacity: true)
        runOf.removeAll(keepingCapacity: true)
        defer { stopped = [] }
        return (given, stopped)
    }

    private func deliver(
        _ run: Run, through: SequenceNumber, _ serial: UInt64, _ reports: LaneReports
    ) {
        let (taken, failures) = (run.taken, run.failures)
        run.core.deliver(taken, through: through) { report in
            guard !report.refusals.isEmpty || !failures.isEmpty else {
                return reports.add(.ran(serial: serial, []))
            }
            let refused = report.refusals.map { refusal in
                let context = taken.contexts[refusal.index]
                return NoEffect(
                    sequence: context.sequence, why: .refused(refusal.error),
                    incarnation: context.origin?.incarnation ?? .none)
            }
            reports.add(
                .ran(
                    serial: serial, (failures + refused).sorted { $0.sequence < $1.sequence }))
        }
    }

    /// A lane that is done with a run leaves its room to the next one.
    private func keep(_ run: Run) {
        guard spare == nil, run.taken.isFinished, isKnownUniquelyReferenced(&run.taken),
            run.taken.isWorthKeeping
        else { return }
        run.taken.clear()
        spare = run.taken
    }
}
