import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A sequencer, its log and any number of nodes in one value: no thread, no socket, and a clock
/// that moves only when it is told to. Every message goes through its encoding.
struct Cluster {
    /// A log in memory: what a disk would hold.
    struct Disk {
        var id: LogID
        var epoch = Epoch.none
        var bodies: [(first: SequenceNumber, last: SequenceNumber, body: Bytes)] = []
        /// As they were saved, ascending.
        var checkpoints: [(sequence: SequenceNumber, bytes: Bytes)] = []
        /// The lowest number that the log still has.
        var floor = SequenceNumber(1)
        /// Whole snapshots, and what came of others.
        var snapshots: [SnapshotPlace: SavedSnapshot] = [:]
        var unfinished: [StoreName: SavedSnapshot] = [:]
        /// What is kept of stores that nobody hosts.
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

    /// What a machine wanted done, in the order in which it was done; or what was lost on its way.
    enum Recorded {
        /// With the node whose connection it names, as it was then.
        case sequencer(SequencerEffect, NodeID?)
        case node(NodeID, ReplicaEffect)
        case lostOnFeed(NodeID)
        case lost(Step)
    }

    var now = Duration.zero
    var disk: Disk
    var sequencer: SequencerMachine?
    var settings = SequencerSettings(feed: "feed")
    var nodes: [NodeID: SimulatedNode] = [:]
    var queue: [Step] = []
    /// Appends that the disk keeps waiting while it is slow.
    var isDiskSlow = false
    var waitingAppends: [Append] = []
    /// Whether answers to what is saved of snapshots wait, those that do, and why none is saved.
    var isSavingSlow = false
    /// Whether what is kept aside waits for ``finishKeeping()``, and what waits.
    var isKeepingSlow = false
    var waitingKeeps: [(jobs: [AsideJob], last: SequenceNumber)] = []
    var waitingSaves: [Step] = []
    var savingFailure: String?
    /// Whether the log keeps confirmations waiting, and how many it does.
    var isConfirmSlow = false
    var waitingConfirms = 0
    /// Below this number the log answers no fetch, as if it had been cut.
    var floor = SequenceNumber(1)
    /// What the log can't read for others.
    var damaged: ClosedRange<SequenceNumber>?
    /// Of which stores the list of snapshots has lost what; nil if it is whole.
    var unlisted: (stores: Set<StoreName>?, isLost: (SnapshotIndexEntry) -> Bool)?
    var notes: [SequencerNote] = []
    /// Which keys were barred, and for how long.
    var bars: [(key: Name, pause: Duration)] = []
    var ends: [SequencerEnd] = []
    var published: [SequencerEffect] = []
    /// How long answers to fetches are on their way; they hold up nothing else.
    var entriesDelay = Duration.zero
    /// Which message of the sequencer is lost, the first one; nil when it was.
    var nextLoss: ((SequencerMessage) -> Bool)?
    private var late: [(due: Duration, step: Step)] = []
    var nonces: UInt64 = 0
    /// Everything that happens, while somebody wants to know.
    var recorded: [Recorded] = []
    var isRecording = false
    private var connections: [NodeID: ConnectionID] = [:]
    private var nextConnection: UInt64 = 1

    init(log: UInt64 = 1) {
        disk = Disk(id: Identifier(high: 7, low: log))
    }

    /// A sequencer, and nodes 1 and 2, which host the store `list`.
    static func twoNodes() -> Cluster {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list")
        return cluster
    }

    var moment: Moment {
        Moment(monotonic: now, wall: Timestamp(1_000_000_000 + now.components.seconds))
    }

    /// Whose connection it is, while it is.
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

    /// A tenure begins, with the checkpoints that there are.
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

    /// The process dies: what was on its way to or from it is lost, and every connection with it.
    mutating func killSequencer() {
        sequencer = nil
        loseQueue()
        waitingAppends.removeAll()
        waitingSaves.removeAll()
        waitingConfirms = 0
    }

    /// What is on its way is lost.
    mutating func loseQueue() {
        for step in queue { record(.lost(step)) }
        queue.removeAll()
    }

    /// The sequencer starts again; every node finds that its connection was made anew.
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
        case .confirmTenure:
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

    /// The log looks whether the tenure is the newest, and says so.
    mutating func answerConfirm() {
        waitingConfirms -= 1
        handle(
            sequencer?.epoch == disk.epoch ? .tenureConfirmed : .logFailed(.superseded))
    }

    /// What a sequencer would say whose log begins at `floor`.
    private func cut(_ message: SequencerMessage) -> SequencerMessage {
        guard case .entries(var entries) = message, floor > entries.floor else { return message }
        entries.floor = floor
        return .entries(entries)
    }

    /// The disk answers what it kept waiting.
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

    /// The connection breaks and is made anew; what was on its way is lost.
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

    /// The connection breaks, and there is none until ``reconnect(_:)``.
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

    mutating func open(_ store: String, on id: NodeID) {
        nodes[id]?.open(store)
        flushInputs(of: id)
        run()
        // The subscription is proven by the next beat.
        pass(settings.beatInterval)
    }

    /// Has a node drop a store, without letting anything arrive.
    ///
    /// - Returns: The request; 0 where the node does not host it.
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

    /// Dispatches texts as one batch, without letting anything arrive.
    mutating func submit(
        _ texts: [String], to target: String, life: SequenceNumber = .zero, from id: NodeID,
        isAtomic: Bool = false
    ) {
        nodes[id]?.dispatch(texts, to: target, life: life, isAtomic: isAtomic)
        flushInputs(of: id)
    }

    mutating func dispatch(_ texts: [String], to target: String, from id: NodeID) {
        submit(texts, to: target, from: id)
        run()
    }

    mutating func withdraw(_ counters: ClosedRange<UInt64>, from id: NodeID) {
        input(.withdraw(RangeSet(counters.lowerBound..<counters.upperBound + 1)), to: id)
    }

    mutating func flushInputs(of id: NodeID) {
        while let next = nodes[id]?.takeInput() { input(next, to: id) }
    }

    // MARK: Time and delivery

    /// Delivers until nothing is on its way.
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

    /// Who speaks on a connection, as the sequencer knows it; in another epoch, if that is named.
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
                        by: try Frame.header(of: bytes).speaker, from: connection))
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

    /// Lets time pass: every deadline is met in its order.
    mutating func pass(_ interval: Duration) {
        let end = now + interval
        while true {
            run()
            var next = end
            if let due = sequencer?.nextDeadline { next = min(next, max(due, now)) }
            for node in nodes.values {
                if let due = node.machine.nextDeadline { next = min(next, max(due, now)) }
            }
            if let due = late.first?.due { next = min(next, max(due, now)) }
            guard next < end else { break }
            // A deadline that is due now and stays due would never let time pass.
            now = next == now ? now + .milliseconds(1) : next
            tick()
        }
        now = end
        tick()
        run()
    }

    private mutating func tick() {
        while let first = late.first, first.due <= now { queue.append(late.removeFirst().step) }
        handle(.tick)
        for id in nodes.keys.sorted() { input(.tick, to: id) }
        run()
    }
}
