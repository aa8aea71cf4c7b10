import Conflux
import ConfluxNode
import ConfluxProtocol
import Dispatch
import Synchronization

/// A store that the gateway serves, of any state.
protocol AnyServedStore: AnyObject, Sendable {
    var name: StoreName { get }
    var records: ServedRecords { get }
    /// The shapes of the state's actions as JSON; nil if they are not known.
    var shapes: [UInt8]? { get }

    /// Checks and encodes an action.
    ///
    /// - Parameter json: The action in canonical JSON.
    /// - Returns: What is to be submitted.
    /// - Throws: Why it is no action of the state.
    func submission(of json: [UInt8]) throws(CodingFailure) -> (BatchTarget, [UInt8])

    /// Calls a function once the records have everything that the store has applied by now.
    func settle(_ body: @escaping @Sendable () -> Void)
}

/// Follows a store, in its lane and on a queue of its own: what is committed becomes records.
///
/// The lane copies the state, which costs nothing until the store changes it, and gives everything else to the queue.
/// While ``copiesMax`` copies wait, the lane makes no further one: later actions share a copy, and so a change.
///
/// *Invariants*: the queue takes the steps in the order of the lane. Each committed action is in exactly one change.
final class ServedStore<S: ReplicatedState>: AnyServedStore {
    let name: StoreName
    let records = ServedRecords()
    let shapes: [UInt8]?

    private let store: Store<S>
    private let epochs: EpochTable
    private let announce: @Sendable () -> Void
    private let actionCoder: ActionCoder<S.Action>
    private let steps = Mutex(Steps())
    private let queue: DispatchQueue
    private let reader: Reader

    /// What the lane gives to the queue.
    fileprivate enum Step: Sendable {
        case loaded(S.Snapshot, SequenceNumber)
        case committed(ActionContext, S.Action, refusal: String?, S.Snapshot?)
        /// Several actions, of which nothing is kept but the last one's context.
        case skipped(ActionContext, count: Int)
        case copied(S.Snapshot)
        case mark(@Sendable () -> Void)
    }

    fileprivate struct Steps {
        var waiting: [Step] = []
        /// The copies among the steps that the queue has not dealt with.
        var copyCount = 0
        /// Whether actions wait for a copy that nobody has asked for yet.
        var isOwed = false
        var isDraining = false
    }

    /// What only the queue uses.
    // Sendable: only the queue uses it.
    private final class Reader: @unchecked Sendable {
        let coder = CanonicalCoder()
        var json = JSONValue.null
        /// The actions since the last state that was encoded; nil if some are missing.
        var actions: [ServedRecord]? = []
        var actionCount = 0
        var last: ActionContext?
        /// What waits until these actions are in a state.
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
        return ServedStore(store, name, payloadBytesMax, epochs, announce)
    }

    private init(
        _ store: Store<S>, _ name: StoreName, _ payloadBytesMax: Int, _ epochs: EpochTable,
        _ announce: @escaping @Sendable () -> Void
    ) {
        self.store = store
        self.name = name
        self.epochs = epochs
        self.announce = announce
        actionCoder = ActionCoder(sizeBytesMax: payloadBytesMax)
        shapes = ActionCatalog.derived(of: S.Action.self, bytesMax: WireLimits.shapesBytesMax)?.json
        queue = DispatchQueue(label: "conflux-gateway-\(name)")
        reader = Reader()
        store.core.scope.use(Watch(following: self), for: store)
        // What the lane has before this is in the copy, and everything after it is shown to the watch. An action between
        // the two is in both, and the number of the copy tells.
        store.core.inspect { [weak self] state, position in
            guard let self, let state else { return }
            add(.loaded(state.snapshot, position), hasCopy: true)
        }
    }

    // MARK: In the lane

    private struct Watch: CommitObserver {
        weak let served: ServedStore?

        init(following served: ServedStore) { self.served = served }

        func didCommit<Other: State>(_ commit: CommittedAction<Other>, refusal: (any Error)?) {
            guard let served, let commit = commit as? CommittedAction<S> else { return }
            served.committed(commit, refusal)
        }

        func didRestore<Other: ReplicatedState>(
            _ snapshot: Other.Snapshot, of state: Other.Type, at position: SequenceNumber
        ) {
            guard let served, let snapshot = snapshot as? S.Snapshot else { return }
            served.add(.loaded(snapshot, position), hasCopy: true)
        }
    }

    private func committed(_ commit: CommittedAction<S>, _ refusal: (any Error)?) {
        let reason = refusal.map { "\($0)" }
        let mayCopy = steps.withLock { $0.copyCount < GatewayBounds.copiesMax }
        let copy = mayCopy && refusal == nil ? commit.snapshot : nil
        add(
            .committed(commit.context, commit.action, refusal: reason, copy),
            hasCopy: copy != nil, isOwed: copy == nil && refusal == nil)
    }

    private func add(_ step: Step, hasCopy: Bool = false, isOwed: Bool = false) {
        let mustDrain = steps.withLock { steps in
            if hasCopy {
                steps.copyCount += 1
                steps.isOwed = false
            } else if isOwed {
                steps.isOwed = true
            }
            steps.append(step)
            defer { steps.isDraining = true }
            return !steps.isDraining
        }
        if mustDrain { queue.async { self.drain() } }
    }

    // MARK: On the queue

    private func drain() {
        while true {
            let batch = steps.withLock { steps in
                defer { steps.waiting = [] }
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
        case .committed(let context, let action, let refusal, let copy):
            note(context, action, refusal)
            if let copy { encode(copy) }
        case .skipped(let context, let count):
            reader.actions = nil
            reader.actionCount += count
            reader.last = context
        case .copied(let snapshot): encode(snapshot)
        case .mark(let body): reader.marks.append(body)
        }
        guard reader.actionCount == 0 || records.present.ending != nil else { return }
        let marks = reader.marks
        reader.marks = []
        for body in marks { body() }
    }

    private func load(_ snapshot: S.Snapshot, _ position: SequenceNumber) {
        defer { steps.withLock { $0.copyCount -= 1 } }
        guard let forms = forms(of: snapshot) else { return }
        reader.json = forms.json
        (reader.actions, reader.actionCount, reader.last) = ([], 0, nil)
        let place = RecordPlace(sequence: position, epoch: epochs.epoch(of: position))
        records.load(
            ServedRecords.State(place: place, position: position, body: forms.bytes))
    }

    private func note(_ context: ActionContext, _ action: S.Action, _ refusal: String?) {
        // The first copy may have it already.
        if let state = records.present.state, context.sequence <= state.position { return }
        reader.last = context
        if refusal == nil { reader.actionCount += 1 }
        guard reader.actions != nil else { return }
        do throws(CodingFailure) {
            let bytes = try actionCoder.encode(action, as: .json)
            let body =
                refusal.map { reason in
                    #"{"action":"#.utf8 + bytes
                        + #","reason":\#(JSONValue.string(reason))}"#.utf8
                } ?? bytes
            let record = ServedRecord(
                kind: refusal == nil ? .action : .refused, place: place(context), actionCount: 1,
                body: Array(body))
            if refusal != nil, reader.actionCount == 0 {
                records.add([record], nil, nil)
            } else {
                reader.actions?.append(record)
            }
        } catch {
            reader.actions = nil
        }
    }

    private func encode(_ snapshot: S.Snapshot) {
        defer { steps.withLock { $0.copyCount -= 1 } }
        guard let context = reader.last, reader.actionCount > 0 else { return }
        guard let forms = forms(of: snapshot),
            let patch = try? JSONPatch.bytes(from: reader.json, to: forms.json)
        else { return }
        let place = place(context)
        records.add(
            reader.actions,
            ServedRecord(
                kind: .change, place: place, actionCount: reader.actionCount, body: patch),
            ServedRecords.State(
                place: place, position: context.sequence, body: forms.bytes))
        reader.json = forms.json
        (reader.actions, reader.actionCount, reader.last) = ([], 0, nil)
    }

    /// A state that can't be encoded ends the service: nobody could be told what it is.
    private func forms(of snapshot: S.Snapshot) -> (bytes: [UInt8], json: JSONValue)? {
        do throws(CodingFailure) {
            return try reader.coder.forms(of: snapshot)
        } catch {
            records.end("The state of \(name) can't be encoded as JSON: \(error.message).")
            return nil
        }
    }

    private func place(_ context: ActionContext) -> RecordPlace {
        RecordPlace(
            sequence: context.sequence, epoch: epochs.epoch(of: context.sequence),
            timestamp: context.timestamp, origin: context.origin)
    }

    // MARK: For requests

    func submission(of json: [UInt8]) throws(CodingFailure) -> (BatchTarget, [UInt8]) {
        let action = try actionCoder.decode(json[...], as: .json)
        let target = BatchTarget(
            target: .store(name), schemaVersion: UInt32(clamping: S.schemaVersion(of: action)),
            coding: S.coding)
        return (target, S.coding == .json ? json : try actionCoder.encode(action, as: S.coding))
    }

    func settle(_ body: @escaping @Sendable () -> Void) {
        store.core.inspect { [weak self] _, _ in
            guard let self else { return body() }
            add(.mark(body))
        }
    }
}

extension ServedStore.Steps {
    /// Adds a step. If too many wait, actions without a copy are counted, and nothing else of them is kept.
    mutating func append(_ step: ServedStore.Step) {
        guard waiting.count >= GatewayBounds.stepsMax,
            case .committed(let context, _, let refusal, nil) = step
        else {
            waiting.append(step)
            return
        }
        let count = refusal == nil ? 1 : 0
        if case .skipped(_, let former)? = waiting.last {
            waiting[waiting.count - 1] = .skipped(context, count: former + count)
        } else {
            waiting.append(.skipped(context, count: count))
        }
    }
}

extension ReplicatedState {
    /// Opens a store of this state for a gateway. *Use*: to open a store of a type that is not known when the program is
    /// built.
    static func serve(
        _ name: StoreName, on node: Node, patience: Duration, payloadBytesMax: Int,
        epochs: EpochTable, announce: @escaping @Sendable () -> Void
    ) async throws(NodeError) -> any AnyServedStore {
        try await ServedStore<Self>.open(
            name, on: node, patience: patience, payloadBytesMax: payloadBytesMax, epochs: epochs,
            announce: announce)
    }
}
