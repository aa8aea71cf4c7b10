import ConfluxHashing
import ConfluxVocabulary

@testable import ConfluxProtocol

/// A sequencer, its log and its connections, driven by the dice. Whatever is decided, everything that it
/// writes and sends must be consistent, and the next term must be able to use its log.
struct SequencerRun {
    var dice: Dice
    private(set) var machine: SequencerMachine
    private(set) var log = WrittenLog()
    private var now = Duration.zero
    /// The append that the log has not answered yet.
    private var underWay: Append?
    /// The log's last commits, which the feed must bring next.
    private var unpublished: ArraySlice<Append.Commit> = []
    private var fetches: [(job: ReadJob, from: SequenceNumber)] = []
    /// The parts of snapshots that the log has not answered yet.
    private var saves: [SnapshotPart] = []
    /// The requests that replicas have not answered yet.
    private var requests: [(SnapshotRequest, ConnectionID)] = []
    private var isConfirming = false
    private var hasEnded = false
    /// The session to which each connection was welcomed.
    private var owners: [ConnectionID: Incarnation] = [:]
    /// The counters that were rejected in this term.
    private var rejected: [Incarnation: RangeSet<UInt64>] = [:]

    init(_ dice: Dice) {
        self.dice = dice
        machine = SequencerMachine(settings: Self.settings)
        begin()
    }

    /// Settings with bounds that are reached soon.
    static let settings: SequencerSettings = {
        var settings = SequencerSettings(feed: "feed")
        settings.payloadBytesMax = 64
        settings.batchBytesMax = 64 + 4_096
        settings.windowBytes = 64 + 4_096
        settings.commitBytesMax = 64 + 4_096 + 4_096
        settings.unsettledOutcomesMax = 12
        settings.initialStateBytesMax = 120
        settings.initialStatesBytesMax = 160
        settings.feedCommitBytesMax = 400
        settings.readsMax = 6
        settings.fetchBytesMax = 256
        settings.sessionsMax = 4
        settings.observersMax = 2
        settings.storesMax = 4
        settings.statesMax = 3
        settings.questionsMax = 3
        settings.barriersMax = 3
        settings.silenceMax = .seconds(1)
        settings.forgetAfter = .seconds(5)
        settings.digestBytesMin = 32
        settings.digestRatioMin = 1
        settings.snapshotBytesMin = 32
        settings.snapshotBytesMax = 4_096
        settings.snapshotPartBytesMax = 1_024
        settings.votePatience = .milliseconds(500)
        settings.uploadsMax = 1
        settings.unconfirmedBytesMax = 2_000
        settings.retention.bytesMax = 1
        return settings
    }()

    var surroundings: Surroundings {
        Surroundings(
            log: log.id, epoch: log.epoch, claim: claim, last: log.last,
            incarnations: Array(log.counters.keys.sorted()), lives: log.lives.values.sorted(),
            counters: machine.sessions.incarnations.compactMap {
                machine.sessions[$0]?.ledger.lastCounter
            }.flatMap { [$0, $0 + 1] }, requests: [1, 2, 3])
    }

    private var claim: Nonce { Identifier(high: 99, low: log.epoch.rawValue) }

    // MARK: Terms

    private mutating func begin() {
        log.beginTerm()
        machine = SequencerMachine(settings: Self.settings)
        underWay = nil
        unpublished = []
        fetches = []
        saves = []
        requests = []
        isConfirming = false
        hasEnded = false
        owners = [:]
        rejected = [:]
        handle(
            .claimed(
                ClaimedLog(
                    log: log.id, epoch: log.epoch, last: log.last, lastEpoch: log.lastEpoch,
                    floor: log.floor, nonce: claim)))
    }

    /// The process dies, and another one begins. The pending append is in the log, or it is not.
    mutating func restart(losing isLost: Bool) {
        if let append = underWay, !isLost { log.append(append) }
        begin()
    }

    /// The log answers, and the term serves.
    mutating func land() {
        guard let append = underWay else { return }
        underWay = nil
        log.append(append)
        let blocks = append.commits.flatMap { commit in
            certain { try Commit.decode(body: commit.frame.dropFirst(Frame.size)) }.blocks
        }
        for case .batch(let incarnation, let batch) in blocks {
            for counter in batch.firstCounter...batch.lastCounter {
                require(
                    rejected[incarnation]?.contains(counter) != true,
                    "\(counter) of \(incarnation) was rejected, and is in the log")
            }
        }
        unpublished = append.commits[...]
        handle(.appended)
        require(unpublished.isEmpty, "a commit was neither published nor announced")
        handle(.published)
    }

    /// Brings everything that was admitted into the log.
    mutating func settle() {
        handle(.drained)
        while underWay != nil {
            land()
            handle(.drained)
        }
    }

    /// Checks that the next term can use the log, whatever nodes did.
    mutating func finish() {
        settle()
        restart(losing: false)
        land()
        require(
            machine.phase == .serving, "a term over its own log is \(machine.phase)")
    }

    // MARK: Inputs

    /// Handles a frame like a shell.
    mutating func take(_ frame: Bytes, from connection: ConnectionID) {
        let input = SequencerInput.frame(frame, limits: machine.limits, from: connection)
        switch input {
        case .received(.hello, _, _, _): handle(input)
        case .received(_, let speaker, _, _):
            // Only a hello begins a session, and each session's messages are separate (rule 8).
            let isStranger = machine.connections[connection]?.session != speaker.session
            if isStranger, speaker.epoch <= log.epoch {
                handleUnchanged(input)
            } else {
                handle(input)
            }
        case .unreadable: handleUnchanged(input)
        default: handle(input)
        }
    }

    /// Checks that an unreadable message, or one of no session, is answered and changes nothing.
    private mutating func handleUnchanged(_ input: SequencerInput) {
        let before = String(describing: machine)
        handle(input)
        require(String(describing: machine) == before, "\(input) changed the machine")
    }

    mutating func pass(_ interval: Duration) {
        let end = now + interval
        while let due = machine.nextDeadline, due < end {
            now = max(now, due)
            handle(.tick)
            require(
                machine.nextDeadline.map { $0 > now } ?? true, "a deadline that stays due at \(now)"
            )
        }
        now = end
        handle(.tick)
    }

    mutating func answerFetch() {
        guard !fetches.isEmpty else { return }
        let (job, from) = fetches.remove(at: dice.below(min(fetches.count, 256)))
        let bodies = log.bodies.filter { body in
            certain { try Commit.decode(body: body) }.last >= from
        }
        switch dice.below(8) {
        case 0: handle(.read(job, .failed))
        case 1:
            let last = from.advanced(by: UInt64(dice.below(4)))
            let damage = Damage(first: from, last: last, message: "not readable")
            handle(.read(job, .commits([], damage: damage)))
        default: handle(.read(job, .commits(Array(bodies.prefix(2)))))
        }
    }

    /// The log saves a part of a snapshot, or fails to.
    mutating func answerSave() {
        guard !saves.isEmpty else { return }
        let part = saves.removeFirst()
        let isSaved = dice.below(8) > 0 && log.save(part)
        handle(
            .snapshotSaved(
                SnapshotSaved(
                    place: part.place, whole: isSaved && part.isLast ? part.reference : nil,
                    failure: isSaved ? nil : "it is full")))
    }

    /// Saves a checkpoint.
    mutating func saveCheckpoint() {
        guard machine.phase == .serving, log.last > log.toldCheckpoints.last ?? .zero else {
            return
        }
        handle(.checkpointSaved(log.saveCheckpoint()))
    }

    /// A replica votes, usually with the state of honest ones.
    mutating func vote(on connection: ConnectionID) -> NodeMessage? {
        guard let store = dice.element(of: log.lives.keys.sorted()),
            let round = machine.directory.life(of: store)?.work.votes.round
        else { return nil }
        let state: [UInt8] = dice.below(6) == 0 ? [dice.byte()] : Self.honestState
        return .digest(
            .vote(
                Vote(
                    place: round.place, schemaVersion: round.schemaVersion,
                    digest: Digest(of: state), refusals: Digest(of: []),
                    byteCount: UInt64(state.count))))
    }

    /// A replica gives a part of a state that was requested.
    mutating func give() -> (NodeMessage, ConnectionID)? {
        guard !requests.isEmpty else { return nil }
        let (request, connection) = requests.removeLast()
        let state = Self.honestState
        let part = state.dropFirst(Int(clamping: request.offset)).prefix(Int(request.limitBytes))
        return (
            .snapshot(
                SnapshotChunk(
                    place: request.place, offset: request.offset, byteCount: UInt64(state.count),
                    bytes: part)), connection
        )
    }

    /// A state of more than one part.
    private static let honestState = [UInt8](repeating: 0x5B, count: 1_500)

    mutating func confirmTerm() {
        guard isConfirming else { return }
        isConfirming = false
        handle(.termConfirmed)
    }

    mutating func handle(_ input: SequencerInput) {
        var effects: [SequencerEffect] = []
        let seconds = now.components.seconds
        let moment = Moment(monotonic: now, wall: Timestamp(1_000 + seconds))
        machine.handle(input, at: moment, into: &effects)
        if isTraced { print("\(now): \(input)", effects.map { "    \($0)" }, separator: "\n") }
        require(!hasEnded || effects.isEmpty, "an ended term goes on: \(effects)")
        if !hasEnded { machine.checkBounds() }
        for effect in effects { perform(effect) }
    }

    // MARK: Effects

    private mutating func perform(_ effect: SequencerEffect) {
        require(!hasEnded, "an effect behind the end: \(effect)")
        switch effect {
        case .readCheckpoint(let last):
            handle(.checkpointRead(log.checkpoint(through: last, &dice)))
        case .readSnapshots:
            handle(.snapshotsRead(log.index))
        case .keepAside(let jobs, let last):
            handle(.keptAside(dice.below(8) == 0 ? [] : log.keepAside(jobs, through: last)))
        case .saveSnapshot(let part):
            require(
                part.bytes.count <= Int(Self.settings.snapshotPartBytesMax), "a part too large")
            saves.append(part)
        case .removeSnapshots(let store): log.removeSnapshots(of: store)
        case .truncate(let floor):
            log.truncate(
                below: floor, bases: machine.directory.lives.lives.mapValues(\.record.baseSequence))
        case .readLog(let from):
            require(from >= log.floor, "reads from \(from), below \(log.floor)")
            let rest = log.bodies.filter { body in
                certain { try Commit.decode(body: body) }.first >= from
            }
            handle(.logRead(Array(rest.prefix(3))))
        case .append(let append):
            require(underWay == nil, "two appends are under way")
            underWay = append
        case .serve(let beat):
            require(beat.last == unpublished.first?.last, "serves from \(beat.last)")
        case .publishCommit(let frame):
            require(
                frame == unpublished.popFirst()?.frame, "a commit is published that the log has not"
            )
            require(frame.count <= Self.settings.feedFrameBytesMax, "the feed carries it whole")
        case .publishBeat(let beat):
            // A commit that is too large for the feed is announced.
            var last = log.last
            if let commit = unpublished.popFirst() {
                require(
                    commit.frame.count > Self.settings.feedFrameBytesMax, "a commit is held back")
                last = commit.last
            }
            require(
                beat.last == last, "a beat of \(beat.last), and the log ends at \(log.last)")
        case .send(let message, let connection): check(message, to: connection)
        case .read(let job):
            switch job.subject {
            case .commits(let from, _):
                require(from >= log.floor, "reads from \(from), below \(log.floor)")
                fetches.append((job, from))
            case .snapshot(let place, let offset):
                let chunk = log.chunk(of: place, at: offset, limitBytes: Int(job.limitBytes))
                handle(.read(job, .snapshot(chunk)))
            }
        case .makeRoom: break
        case .confirmTerm:
            require(!isConfirming, "asks twice for one confirmation")
            isConfirming = true
        case .bar(let key, let pause):
            require((1...256).contains(pause / .seconds(1)), "\(key) is barred for \(pause)")
        case .reloadKeys(let question, let connection):
            handle(.answered(question, by: connection, .reloaded(count: 1)))
        case .note: break
        case .end: hasEnded = true
        }
    }

    /// Checks that a message can be read, and is true.
    private mutating func check(_ message: SequencerMessage, to connection: ConnectionID) {
        require(unpublished.isEmpty, "said before the commit was published: \(message)")
        let frame = Frame.encode(message, epoch: log.epoch)
        require(
            certain { try Frame.decodeSequencerMessage(frame[...]) } == message, "\(message)")
        switch message {
        case .snapshotRequest(let request): requests = requests.suffix(7) + [(request, connection)]
        case .welcome(let welcome):
            owners[connection] = welcome.incarnation
            require(
                welcome.incarnation == .none || log.counters[welcome.incarnation] != nil,
                "a welcome to \(welcome.incarnation), which the log has not")
        case .receipts(let receipts):
            guard let owner = owners[connection] else { fail("receipts for nobody: \(receipts)") }
            for run in receipts.runs { log.check(run, of: owner) }
        case .rejection(let rejection):
            guard let owner = owners[connection] else { fail("a rejection for nobody") }
            // An unreadable batch may claim to have any number of entries.
            let counters =
                rejection.firstCounter..<rejection.firstCounter + UInt64(rejection.count)
            require(
                log.places[owner]?.keys.contains { counters.contains($0) } != true,
                "some of \(counters) are in the log, and rejected")
            rejected[owner, default: RangeSet()].insert(contentsOf: counters)
        default: break
        }
    }
}
