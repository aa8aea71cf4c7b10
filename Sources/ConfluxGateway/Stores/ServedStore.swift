import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker
import Dispatch
import Synchronization

/// Follows a store, in its lane and on a queue of its own: what is committed becomes records.
///
/// The lane copies the state, which costs nothing until the store changes it, and gives everything else to the queue.
/// While ``copiesMax`` copies wait, the lane makes no further one: later actions share a copy, and so a change.
///
/// *Invariants*: the queue takes the steps in the order of the lane. Each committed action is in exactly one change.
final class ServedStore<S: ReplicatedState>: AnyServedStore {
    let name: StoreName
    let records = ServedRecords()
    let catalog: ActionCatalog?

    private let store: Store<S>
    private let node: Node
    private let epochs: EpochTable
    private let announce: @Sendable () -> Void
    private let actionCoder: ActionCoder<S.Action>
    private let steps = Mutex(Steps())
    private let queue: DispatchQueue
    private let reader: Reader

    typealias Copy = (index: Int, snapshot: S.Snapshot)

    /// What the lane gives to the queue.
    enum Step: Sendable {
        case loaded(S.Snapshot, SequenceNumber)
        /// With copies of the state after some of the actions that were not refused, by their indices.
        case run(CommittedRun<S>, copies: [Copy])
        /// Several actions, of which nothing is kept but the last one's context.
        case skipped(ActionContext, count: Int)
        case copied(S.Snapshot)
        case mark(@Sendable () -> Void)
        case caughtUp
        case ended(String, isOver: Bool)
    }

    fileprivate struct Steps {
        var waiting: [Step] = []
        /// How many actions are among them.
        var actionCount = 0
        /// The copies among the steps that the queue has not dealt with.
        var copyCount = 0
        /// Whether actions wait for a copy that nobody has asked for yet.
        var isOwed = false
        var isDraining = false
    }

    /// Committed actions that are in no change yet.
    private struct Pending {
        /// nil if some are missing.
        var records: [ServedRecord]? = []
        /// How many were not refused.
        var count = 0
        /// The number of the first one that was not refused.
        var first: SequenceNumber?
        /// The last one that was not refused.
        var last: ActionContext?
        /// The number of the last one, refused or not.
        var position = SequenceNumber.zero
    }

    /// What only the queue uses.
    // Sendable: only the queue uses it.
    private final class Reader: @unchecked Sendable {
        let coder = CanonicalCoder()
        var json = JSONValue.null
        var isLoaded = false
        var pending = Pending()
        /// The reloads after which the node has not caught up: the state may lack what was told before.
        var reloadCount = 0
        /// What waits until everything before is in a state.
        var marks: [@Sendable () -> Void] = []
    }

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - node: Hosts it.
    ///   - patience: How long to wait for the sequencer.
    ///   - payloadBytesMax: The most bytes of an action.
    ///   - epochs: Knows the epochs of entries.
    ///   - announce: Called when there are new records, on any thread.
    /// - Returns: The store, whose records begin with its present state.
    /// - Throws: Why it can't be opened.
    static func open(
        _ name: StoreName, on node: Node, patience: Duration, payloadBytesMax: Int,
        epochs: EpochTable, announce: @escaping @Sendable () -> Void
    ) async throws(NodeError) -> ServedStore<S> {
        let store = try await node.store(S.self, named: name.instance.text, patience: patience)
        return ServedStore(store, name, node, payloadBytesMax, epochs, announce)
    }

    private init(
        _ store: Store<S>, _ name: StoreName, _ node: Node, _ payloadBytesMax: Int,
        _ epochs: EpochTable, _ announce: @escaping @Sendable () -> Void
    ) {
        self.store = store
        self.name = name
        self.node = node
        self.epochs = epochs
        self.announce = announce
        actionCoder = ActionCoder(sizeBytesMax: payloadBytesMax)
        catalog = ActionCatalog.derived(of: S.Action.self, bytesMax: WireLimits.shapesBytesMax)
        queue = DispatchQueue(label: "conflux-gateway-\(name)")
        reader = Reader()
        let gathering = Gathering(of: self)
        store.core.follow(
            with: RunFollower(
                willBeginRun: { gathering.beginRun(count: $0, payloadBytes: $1) },
                didCommit: { gathering.add($0, $1, $2, $3) }, didEndRun: { gathering.endRun() },
                didBegin: { gathering.begin($0, at: $1) }))
    }

    // MARK: In the lane

    /// How many copies may be made now.
    var copiesLeft: Int {
        GatewayBounds.copiesMax - steps.withLock { $0.copyCount }
    }

    func add(_ run: CommittedRun<S>, _ copies: [Copy], isOwed: Bool) {
        let mustDrain = steps.withLock { steps in
            steps.add(run, copies, isOwed: isOwed)
            defer { steps.isDraining = true }
            return !steps.isDraining
        }
        if mustDrain { queue.async { self.drain() } }
    }

    func add(_ step: Step, hasCopy: Bool = false) {
        let mustDrain = steps.withLock { steps in
            if hasCopy {
                steps.copyCount += 1
                steps.isOwed = false
            }
            steps.waiting.append(step)
            defer { steps.isDraining = true }
            return !steps.isDraining
        }
        if mustDrain { queue.async { self.drain() } }
    }

    // MARK: On the queue

    private func drain() {
        while true {
            let batch = steps.withLock { steps in
                defer { (steps.waiting, steps.actionCount) = ([], 0) }
                if steps.waiting.isEmpty { steps.isDraining = false }
                return steps.waiting
            }
            if batch.isEmpty { return }
            for step in batch { take(step) }
            let mustCopy = steps.withLock { steps in
                defer { if steps.copyCount == 0 { steps.isOwed = false } }
                return steps.isOwed && steps.copyCount == 0
            }
            if mustCopy {
                store.core.inspect { [weak self] state, _ in
                    guard let self, let state else { return }
                    add(.copied(state.snapshot), hasCopy: true)
                }
            }
            announce()
        }
    }

    private func take(_ step: Step) {
        switch step {
        case .loaded(let snapshot, let position): load(snapshot, position)
        case .run(let run, let copies): note(run, copies)
        case .skipped(let context, let count):
            reader.pending.records = nil
            add(context, count)
            if reader.pending.count == 0 {
                records.skip(through: context.sequence)
                reader.pending = Pending()
            }
        case .copied(let snapshot): encode(snapshot)
        case .mark(let body): reader.marks.append(body)
        case .caughtUp: reader.reloadCount -= 1
        case .ended(let reason, let isOver): records.end(reason, isOver: isOver)
        }
        let isSettled = reader.pending.count == 0 && reader.reloadCount == 0
        guard isSettled || records.present.ending != nil else { return }
        let marks = reader.marks
        reader.marks = []
        for body in marks { body() }
    }

    private func load(_ snapshot: S.Snapshot, _ position: SequenceNumber) {
        defer { forgetCopy() }
        if reader.isLoaded {
            // The entries after the snapshot, for which there may be receipts, come again.
            reader.reloadCount += 1
            catchUp()
        }
        reader.isLoaded = true
        show(
            snapshot, at: RecordPlace(sequence: position, epoch: epochs.epoch(of: position)),
            position)
    }

    /// Begins the records anew with a state.
    private func show(
        _ snapshot: S.Snapshot, at place: RecordPlace, _ position: SequenceNumber
    ) {
        reader.pending = Pending()
        guard let forms = forms(of: snapshot) else { return }
        reader.json = forms.json
        records.load(ServedRecords.State(place: place, position: position, body: forms.bytes))
    }

    /// Waits until the node has applied everything that was committed by now.
    private func catchUp() {
        Task { [weak self, node] in
            var isOver = false
            while !isOver {
                do throws(NodeError) {
                    try await node.barrier()
                    isOver = true
                } catch {
                    isOver = error.code == .closed
                    if !isOver { await Pause.wait(for: .milliseconds(100)) }
                }
            }
            self?.add(.caughtUp)
        }
    }

    private func add(_ context: ActionContext, _ count: Int) {
        reader.pending.position = context.sequence
        guard count > 0 else { return }
        reader.pending.count += count
        reader.pending.first = reader.pending.first ?? context.sequence
        reader.pending.last = context
    }

    private func note(_ run: CommittedRun<S>, _ copies: [Copy]) {
        guard let last = run.contexts.last else { return }
        // The entries of a run are of one commit.
        let epoch = epochs.epoch(of: last.sequence)
        var copies = copies[...]
        for (index, context) in run.contexts.enumerated() {
            let isRefused = run.refusals[index] != nil
            add(context, isRefused ? 0 : 1)
            if reader.pending.records != nil {
                let record = ServedRecord(
                    isRefused ? .refused : .action,
                    RecordPlace(
                        sequence: context.sequence, epoch: epoch, timestamp: context.timestamp,
                        origin: context.origin), of: run, at: index)
                if reader.pending.count == 0 {
                    records.add([record], nil, nil)
                } else {
                    reader.pending.records?.append(record)
                }
            }
            guard copies.first?.index == index else { continue }
            encode(copies.removeFirst().snapshot)
        }
    }

    private func forgetCopy() { steps.withLock { $0.copyCount -= 1 } }

    private func encode(_ snapshot: S.Snapshot) {
        defer { forgetCopy() }
        let pending = reader.pending
        guard let last = pending.last, let first = pending.first else { return }
        let place = place(last)
        guard let forms = forms(of: snapshot) else { return }
        guard let patch = try? JSONPatch.bytes(from: reader.json, to: forms.json) else {
            // It is nested too deeply for a patch.
            return show(snapshot, at: place, pending.position)
        }
        records.add(
            pending.records,
            ServedRecord(
                kind: .change, first: first, place: place, actionCount: pending.count, body: patch),
            ServedRecords.State(place: place, position: pending.position, body: forms.bytes))
        reader.json = forms.json
        reader.pending = Pending()
    }

    /// A state that can't be encoded ends the service: nobody could be told what it is.
    private func forms(of snapshot: S.Snapshot) -> (bytes: [UInt8], json: JSONValue)? {
        do throws(CodingFailure) {
            return try reader.coder.forms(of: snapshot)
        } catch {
            reader.pending = Pending()
            records.end(
                "The state of \(name) can't be encoded as JSON: \(error.message).", isOver: false)
            return nil
        }
    }

    private func place(_ context: ActionContext) -> RecordPlace {
        RecordPlace(
            sequence: context.sequence, epoch: epochs.epoch(of: context.sequence),
            timestamp: context.timestamp, origin: context.origin)
    }

    // MARK: For requests

    var replayed: ReplayedState { .replicated(S.self) }

    func submission(of json: [UInt8]) throws(CodingFailure) -> (BatchTarget, [UInt8]) {
        let action = try actionCoder.decode(json[...], as: .json)
        let target = BatchTarget(
            target: .store(name), schemaVersion: UInt32(clamping: S.schemaVersion(of: action)),
            coding: S.coding)
        return (target, S.coding == .json ? json : try actionCoder.encode(action, as: S.coding))
    }

    func end(_ reason: String, isOver: Bool) {
        store.core.inspect { [weak self] _, _ in self?.add(.ended(reason, isOver: isOver)) }
    }

    func settle(_ body: @escaping @Sendable (StoreVersion) -> Void) {
        store.core.inspect { [weak self, store] _, _ in
            let version = store.version
            guard let self else { return body(version) }
            add(.mark { body(version) })
        }
    }
}

extension ServedStore.Steps {
    /// Adds a run. If too many actions wait, they are counted, and nothing else of them is kept.
    mutating func add(_ run: CommittedRun<S>, _ copies: [ServedStore.Copy], isOwed: Bool) {
        guard let last = run.contexts.last else { return }
        guard actionCount + run.count <= GatewayBounds.actionsMax else {
            self.isOwed = self.isOwed || run.committedCount > 0
            if case .skipped(_, let former)? = waiting.last {
                waiting[waiting.count - 1] = .skipped(last, count: former + run.committedCount)
            } else {
                waiting.append(.skipped(last, count: run.committedCount))
            }
            return
        }
        actionCount += run.count
        copyCount += copies.count
        if run.committedCount > 0 { self.isOwed = isOwed }
        waiting.append(.run(run, copies: copies))
    }
}
