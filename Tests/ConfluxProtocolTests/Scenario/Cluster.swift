import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A sequencer, its log and any number of nodes in one value: no threads, no sockets, and a clock
/// that moves only when it is told to. Every message is encoded and decoded.
struct Cluster {
    /// A log in memory, in place of a disk.
    struct Disk {
        var id: LogID
        var epoch = Epoch.none
        var bodies: [(first: SequenceNumber, last: SequenceNumber, body: Bytes)] = []
        /// The saved checkpoints, in ascending order.
        var checkpoints: [(sequence: SequenceNumber, bytes: Bytes)] = []
        /// The lowest number that the log still has.
        var floor = SequenceNumber(1)
        /// The complete snapshots. `unfinished` has the incomplete ones.
        var snapshots: [SnapshotPlace: SavedSnapshot] = [:]
        var unfinished: [StoreName: SavedSnapshot] = [:]
        /// The entries that are kept aside for stores that nobody hosts.
        var asides: [StoreName: SavedSnapshot] = [:]
        var last: SequenceNumber { bodies.last?.last ?? .zero }

        mutating func append(_ append: Append) {
            bodies += append.commits.map { ($0.first, $0.last, $0.frame.dropFirst(Frame.size)) }
        }
    }

    enum Step {
        case toSequencer(NodeID, [UInt8])
        case toNode(NodeID, ConnectionID, [UInt8])
        case feed([UInt8])
        case logged(Append)
        case saved(SnapshotSaved)
    }

    typealias NodeID = Int

    /// An effect that a machine wanted, or something that was lost in transit, in order.
    enum Recorded {
        /// An effect of the sequencer, with the node at the other end of its connection, at that time.
        case sequencer(SequencerEffect, NodeID?)
        case node(NodeID, ReplicaEffect)
        case lostOnFeed(NodeID)
        case lost(Step)
    }

    var now = Duration.zero
    /// Whether the wall clock shows the time that passes. Otherwise it counts the seconds as nanoseconds.
    var hasTrueClock = false
    var disk: Disk
    var sequencer: SequencerMachine?
    var settings = SequencerSettings(feed: "feed")
    var nodes: [NodeID: SimulatedNode] = [:]
    var queue: [Step] = []
    /// Whether the disk is slow. Then `waitingAppends` has the appends that it has not done.
    var isDiskSlow = false
    var waitingAppends: [Append] = []
    /// Whether the saving of snapshots is slow. See also `waitingSaves`, and `savingFailure` for its error.
    var isSavingSlow = false
    /// Whether jobs for entries aside wait for ``finishKeeping()``. Then `waitingKeeps` has them.
    var isKeepingSlow = false
    var waitingKeeps: [(jobs: [AsideJob], last: SequenceNumber)] = []
    var waitingSaves: [Step] = []
    var savingFailure: String?
    /// Whether the log delays confirmations. Then `waitingConfirms` counts the delayed ones.
    var isConfirmSlow = false
    var waitingConfirms = 0
    /// The log answers no fetch below this number, as if its entries had been discarded.
    var floor = SequenceNumber(1)
    /// The entries that the log can't read for nodes.
    var damaged: ClosedRange<SequenceNumber>?
    /// The stores and the entries that the list of snapshots has lost; nil if it is complete.
    var unlisted: (stores: Set<StoreName>?, isLost: (SnapshotIndexEntry) -> Bool)?
    var notes: [SequencerNote] = []
    /// The keys that were barred, and for how long.
    /// How often the sequencer has asked for checkpoints at the log's end.
    var checkpointsWanted = 0
    var bars: [(key: Name, pause: Duration)] = []
    var ends: [SequencerEnd] = []
    var published: [SequencerEffect] = []
    /// The delay of answers to fetches. It delays nothing else.
    var entriesDelay = Duration.zero
    /// The sequencer's first message for which this is true is lost. Then it becomes nil.
    var nextLoss: ((SequencerMessage) -> Bool)?
    private var late: [(due: Duration, step: Step)] = []
    var nonces: UInt64 = 0
    /// Everything that happens while `isRecording` is true.
    var recorded: [Recorded] = []
    var isRecording = false
    /// The keys of nodes. A node that is not in here has none.
    var principals: [NodeID: Principal] = [:]
    private var connections: [NodeID: ConnectionID] = [:]
    private var nextConnection: UInt64 = 1

    init(log: UInt64 = 1) {
        disk = Disk(id: Identifier(high: 7, low: log))
    }

    /// A cluster with a sequencer, and nodes 1 and 2, which host the store `list`.
    static func twoNodes() -> Cluster {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list")
        return cluster
    }

    var moment: Moment {
        let (seconds, attoseconds) = now.components
        let passed =
            hasTrueClock ? seconds * 1_000_000_000 + attoseconds / 1_000_000_000 : seconds
        return Moment(monotonic: now, wall: Timestamp(1_000_000_000 + passed))
    }

    /// The node of a connection that still exists.
    func node(of connection: ConnectionID) -> NodeID? {
        connections.first { $0.value == connection }?.key
    }

    func connection(of node: NodeID) -> ConnectionID? { connections[node] }

    private mutating func record(_ event: Recorded) {
        if isRecording { recorded.append(event) }
    }

    // MARK: Sequencer

    mutating func startSequencer() {
        sequencer = nil
        checkpoint()
        claimAndRead()
    }

    /// A term begins, with the saved checkpoints.
    mutating func claimAndRead() {
        disk.epoch = disk.epoch.raised(by: 1)
        nonces += 1
        sequencer = SequencerMachine(settings: settings)
        handle(
            .claimed(
                ClaimedLog(
                    log: disk.id, epoch: disk.epoch, last: disk.last, lastEpoch: disk.lastEpoch,
                    floor: disk.floor, nonce: Identifier(high: 99, low: nonces << 32))))
        run()
    }

    /// Kills the process: everything in transit to or from it is lost, and all connections end.
    mutating func killSequencer() {
        sequencer = nil
        loseQueue()
        waitingAppends.removeAll()
        waitingSaves.removeAll()
        waitingConfirms = 0
    }

    /// Loses everything that is in transit.
    mutating func loseQueue() {
        for step in queue { record(.lost(step)) }
        queue.removeAll()
    }

    /// Restarts the sequencer. Every node finds that it has a new connection.
    mutating func restartSequencer() {
        killSequencer()
        startSequencer()
        for id in nodes.keys.sorted() { reconnect(id) }
    }

    mutating func handle(_ input: SequencerInput) {
        var effects: [SequencerEffect] = []
        let moment = moment
        sequencer?.handle(input, at: moment, into: &effects)
        for effect in effects { perform(effect) }
    }

    private mutating func perform(_ effect: SequencerEffect) {
        switch effect {
        case .send(_, let connection): record(.sequencer(effect, node(of: connection)))
        case .read(let job): record(.sequencer(effect, node(of: job.connection)))
        default: record(.sequencer(effect, nil))
        }
        switch effect {
        case .readLog(let from):
            let bodies = disk.bodies.filter { $0.last >= from }.prefix(2).map(\.body)
            handle(.logRead(Array(bodies)))
        case .readCheckpoint(let last):
            let found = disk.checkpoints.last { $0.sequence <= last }
            handle(.checkpointRead(found.map { .found($0.sequence, $0.bytes) } ?? .none))
        case .append(let append):
            if isDiskSlow { waitingAppends.append(append) } else { queue.append(.logged(append)) }
        case .readSnapshots: listSnapshots()
        case .saveSnapshot(let part): save(part)
        case .removeSnapshots(let store): disk.removeSnapshots(of: store)
        case .keepAside(let jobs, let last): keepAside(jobs, through: last)
        case .truncate(let floor): disk.truncate(below: floor)
        case .serve: break
        case .publishCommit(let frame):
            published.append(effect)
            queue.append(.feed(Array(frame)))
        case .publishBeat(let beat):
            queue.append(.feed(Frame.encode(beat, epoch: sequencer?.epoch ?? disk.epoch)))
        case .send(let message, let connection):
            published.append(effect)
            if nextLoss?(message) == true {
                nextLoss = nil
                return
            }
            if let id = node(of: connection) {
                let epoch = sequencer?.epoch ?? disk.epoch
                let frame = Frame.encode(cut(message), epoch: epoch)
                if case .entries = message, entriesDelay > .zero {
                    late.append((now + entriesDelay, .toNode(id, connection, frame)))
                } else {
                    queue.append(.toNode(id, connection, frame))
                }
            }
        case .read(let job): handle(.read(job, read(job)))
        case .makeRoom: checkpointsWanted += 1
        case .confirmTerm:
            waitingConfirms += 1
            if !isConfirmSlow { answerConfirm() }
        case .bar(let key, let pause): bars.append((key, pause))
        case .reloadKeys(let question, let connection):
            handle(.answered(question, by: connection, .reloaded(count: 1)))
        case .note(let note): notes.append(note)
        case .end(let end):
            ends.append(end)
            sequencer = nil
        }
    }

    private func read(_ job: ReadJob) -> ReadOutcome {
        switch job.subject {
        case .snapshot(let place, let offset):
            return .snapshot(
                disk.chunk(of: place, at: offset, limitBytes: Int(job.limitBytes)))
        case .commits(let first, _):
            if let damaged, damaged.contains(first) {
                let damage = Damage(
                    first: damaged.lowerBound, last: damaged.upperBound,
                    message: "Entries \(damaged) are damaged.")
                return .commits([], damage: damage)
            }
            let bodies = disk.bodies.filter { $0.last >= first }
                .prefix { damaged?.contains($0.first) != true }.prefix(3).map(\.body)
            return .commits(Array(bodies))
        }
    }

    /// The log checks whether the term is the newest, and answers.
    mutating func answerConfirm() {
        waitingConfirms -= 1
        handle(
            sequencer?.epoch == disk.epoch ? .termConfirmed : .logFailed(.superseded))
    }

    /// The message as a sequencer would send it whose log begins at `floor`.
    private func cut(_ message: SequencerMessage) -> SequencerMessage {
        guard case .entries(var entries) = message, floor > entries.floor else { return message }
        entries.floor = floor
        return .entries(entries)
    }

    /// The disk finishes all waiting appends.
    mutating func finishAppends() {
        isDiskSlow = false
        for append in waitingAppends { queue.append(.logged(append)) }
        waitingAppends.removeAll()
        run()
    }

    // MARK: Nodes

    @discardableResult
    mutating func addNode(
        _ id: NodeID, named name: String? = nil, role: Hello.Role = .member, key: String? = nil,
        store: String? = nil, adjusting adjust: (inout ReplicaSettings) -> Void = { _ in }
    ) -> NodeID {
        var settings = ReplicaSettings(name: name.flatMap { Name($0) }, role: role)
        adjust(&settings)
        nodes[id] = SimulatedNode(id: id, settings: settings, key: key)
        connect(id)
        input(.start, to: id)
        run()
        if let store { open(store, on: id) }
        return id
    }

    private mutating func connect(_ id: NodeID) {
        endConnection(of: id)
        connections[id] = ConnectionID(rawValue: nextConnection)
        nextConnection += 1
    }

    /// Replaces a node's connection by a new one. Everything in transit is lost.
    mutating func reconnect(_ id: NodeID) {
        let isLost = { (step: Step) in
            switch step {
            case .toSequencer(id, _), .toNode(id, _, _): true
            default: false
            }
        }
        for step in queue where isLost(step) { record(.lost(step)) }
        queue.removeAll(where: isLost)
        connect(id)
        input(.reconnected, to: id)
        run()
    }

    /// Ends a node's connection. It has none until ``reconnect(_:)``.
    mutating func disconnect(_ id: NodeID) {
        endConnection(of: id)
        input(.reconnected, to: id)
    }

    mutating func removeNode(_ id: NodeID) {
        nodes[id] = nil
        endConnection(of: id)
    }

    private mutating func endConnection(of id: NodeID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        handle(.disconnected(connection))
    }

    mutating func input(_ input: ReplicaInput, to id: NodeID) {
        let moment = moment
        guard let (sends, effects) = nodes[id]?.handle(input, at: moment) else { return }
        for effect in effects { record(.node(id, effect)) }
        for frame in sends { queue.append(.toSequencer(id, frame)) }
    }

    /// Dispatches the actions of a builder.
    mutating func dispatch(
        _ builder: inout BatchBuilder, from id: NodeID, isAtomic: Bool = false
    ) {
        guard let batch = nodes[id]?.machine.batch(of: &builder, isAtomic: isAtomic) else { return }
        input(.dispatched(batch), to: id)
    }

    mutating func open(_ store: String, on id: NodeID) {
        nodes[id]?.open(store)
        flushInputs(of: id)
        run()
        // The next beat proves the subscription.
        pass(settings.beatInterval)
    }

    /// Makes a node drop a store, without delivering anything.
    ///
    /// - Returns: The request, or 0 if the node does not host the store.
    mutating func drop(_ store: String, by id: NodeID) -> UInt64 {
        let request = nodes[id]?.drop(store)
        flushInputs(of: id)
        return request ?? 0
    }

    mutating func bridge(
        _ state: String, schemaVersion: UInt32 = 1, shapes: Bytes? = nil, on id: NodeID
    ) {
        nodes[id]?.bridge(state, schemaVersion: schemaVersion, shapes: shapes)
        flushInputs(of: id)
        run()
        pass(settings.beatInterval)
    }

    /// Dispatches texts as one batch, without delivering anything.
    mutating func submit(
        _ texts: [String], to target: String, life: SequenceNumber = .zero, from id: NodeID,
        ifUnchangedSince version: StoreVersion? = nil, isAtomic: Bool = false
    ) {
        nodes[id]?.dispatch(
            texts, to: target, life: life, ifUnchangedSince: version, isAtomic: isAtomic)
        flushInputs(of: id)
    }

    mutating func dispatch(_ texts: [String], to target: String, from id: NodeID) {
        submit(texts, to: target, from: id)
        run()
    }

    mutating func withdraw(_ counters: ClosedRange<UInt64>, from id: NodeID) {
        input(.withdraw([counters.lowerBound..<counters.upperBound + 1]), to: id)
    }

    mutating func flushInputs(of id: NodeID) {
        while let next = nodes[id]?.takeInput() { input(next, to: id) }
    }

    // MARK: Time and delivery

    /// Delivers until nothing is in transit.
    mutating func run() {
        var steps = 0
        while true {
            steps += 1
            precondition(steps < 1_000_000, "messages never stop")
            if queue.isEmpty {
                handle(.drained)
                if queue.isEmpty { break }
                continue
            }
            deliver(queue.removeFirst())
        }
    }

    /// The speaker of a connection, as the sequencer knows it, or the same one in another epoch.
    func speaker(_ connection: ConnectionID, epoch: Epoch? = nil) -> Speaker {
        Speaker(
            epoch: epoch ?? disk.epoch,
            session: sequencer?.connections[connection]?.session ?? .none)
    }

    mutating func deliver(_ step: Step) {
        switch step {
        case .toSequencer(let id, let frame):
            guard sequencer != nil, let connection = connections[id] else { return }
            do {
                let bytes = frame[...]
                handle(
                    .received(
                        try Frame.decodeNodeMessage(bytes),
                        by: try Frame.header(of: bytes).speaker, from: connection,
                        as: principals[id] ?? .anybody))
            } catch {
                Issue.record("the sequencer could not read a frame: \(error)")
            }
        case .toNode(let id, let connection, let frame):
            guard connections[id] == connection else { return }
            do {
                let bytes = frame[...]
                let message = try Frame.decodeSequencerMessage(bytes)
                input(.received(message, epoch: try Frame.header(of: bytes).epoch), to: id)
            } catch {
                Issue.record("node \(id) could not read a frame: \(error)")
            }
        case .feed(let frame):
            for id in nodes.keys.sorted() { feed(frame, to: id) }
        case .logged(let append):
            disk.append(append)
            handle(.appended)
            handle(.published)
        case .saved(let saved): handle(.snapshotSaved(saved))
        }
    }

    private mutating func feed(_ frame: [UInt8], to id: NodeID) {
        guard nodes[id]?.isSubscribed == true else { return }
        if let drops = nodes[id]?.feedDrops, drops > 0 {
            nodes[id]?.feedDrops = drops - 1
            record(.lostOnFeed(id))
            return
        }
        do {
            let bytes = frame[...]
            let epoch = try Frame.header(of: bytes).epoch
            switch try Frame.decodeFeedMessage(bytes) {
            case .commit(let commit):
                input(.fed(commit, byteCount: frame.count, epoch: epoch), to: id)
            case .beat(let beat): input(.beaten(beat, epoch: epoch), to: id)
            }
        } catch {
            Issue.record("node \(id) could not read the feed: \(error)")
        }
    }

    /// Lets time pass, and meets every deadline in order.
    mutating func pass(_ interval: Duration) {
        let end = now + interval
        while true {
            run()
            var next = end
            if let due = sequencer?.nextDeadline { next = min(next, max(due, now)) }
            for id in nodes.keys {
                if let due = nodes[id]?.machine.nextDeadline { next = min(next, max(due, now)) }
            }
            if let due = late.first?.due { next = min(next, max(due, now)) }
            guard next < end else { break }
            // If a deadline stays due after it was met, time has to pass anyway.
            now = next == now ? now + .milliseconds(1) : next
            tick()
        }
        now = end
        tick()
        run()
    }

    mutating func tick() {
        while let first = late.first, first.due <= now { queue.append(late.removeFirst().step) }
        handle(.tick)
        for id in nodes.keys.sorted() { input(.tick, to: id) }
        run()
    }
}
