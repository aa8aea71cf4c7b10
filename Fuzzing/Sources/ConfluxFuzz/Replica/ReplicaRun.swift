import ConfluxVocabulary

@testable import ConfluxProtocol

/// A node, and the sequencer that it is made to see, driven by the dice. Whatever the node is told, every
/// action that it dispatched has one outcome, and the entries that it delivers have no gaps.
struct ReplicaRun {
    var dice: Dice
    private(set) var machine: ReplicaMachine
    var sequencer = PretendedSequencer()
    private var now = Duration.zero
    /// The node's messages that were not answered yet. *Bounded*: the oldest one is lost.
    private(set) var unanswered: [NodeMessage] = []
    /// The deliveries that are not applied yet.
    private var unapplied: [(last: SequenceNumber, bytes: Int, isCatchUp: Bool)] = []
    private var progress = ApplyProgress()
    /// The stores that were given a state and have not reported it.
    private var restoring: [(store: StoreName, through: SequenceNumber, request: UInt64)] = []
    /// The parts of states that the sequencer requested.
    private var given: [SnapshotChunk] = []
    private var delivered: SequenceNumber?
    /// How many actions were dispatched, and how many have their outcomes.
    private var dispatchedCount: UInt64 = 0
    private var settledCount: UInt64 = 0
    private var lastSettled: UInt64 = 0
    /// The most bytes of one answer to a fetch, or of one frame of the feed, so far.
    private var answerBytesMax = 0
    private var hasEnded = false
    private(set) var asked: [Question] = []
    private var nextRequest: UInt64 = 1
    /// The requests that wait for a number, and got no answer yet.
    private(set) var waiting: Set<UInt64> = []
    /// The numbers for which some of them wait. The others wait for the sequencer's answer.
    private(set) var receipts: [UInt64: SequenceNumber] = [:]
    private var nextWait: UInt64 = 1

    init(_ dice: Dice) {
        self.dice = dice
        machine = ReplicaMachine(
            settings: Self.settings, nonce: Identifier(high: 42, low: 1))
        handle(.start)
    }

    /// Settings with bounds that are reached soon.
    static let settings: ReplicaSettings = {
        var settings = ReplicaSettings(name: Name("a"), role: .member)
        settings.bufferBytesMax = 600
        settings.recentBytesMax = 600
        settings.deliveryBytesMax = 500
        settings.fetchBytes = 300
        settings.catchUpBytesMax = 400
        return settings
    }()

    /// More than a full window of batches and their answers, so that a session can recover.
    private static let unansweredMax = 512

    // MARK: Inputs

    /// Handles a frame of the sequencer like a shell.
    mutating func take(_ frame: Bytes) {
        do throws(WireError) {
            let epoch = try Frame.header(of: frame).epoch
            let message = try Frame.decodeSequencerMessage(frame)
            if case .entries(let entries) = message {
                let bytes = entries.commits.reduce(0) { $0 + $1.count }
                answerBytesMax = max(answerBytesMax, bytes)
            }
            switch message {
            case .welcome, .bye: handle(.received(message, epoch: epoch))
            default:
                // Before its welcome, nothing of an epoch is believed, and nothing of an older epoch ever.
                let isIgnored = !machine.isJoined || epoch < machine.epoch
                let before = isIgnored ? belief : ""
                handle(.received(message, epoch: epoch))
                require(!isIgnored || belief == before, "\(message) changed the machine")
            }
        } catch {
            require(!error.message.isEmpty, "no words")
        }
    }

    /// The machine without the mark that it has reported a stale sequencer, and without what it asks for again: an
    /// answer that is dropped makes its request due.
    private var belief: String {
        var copy = machine
        copy.staleEpoch = .none
        copy.holeFetch = nil
        for index in copy.catchUps.runners.indices { copy.catchUps.runners[index].fetch = nil }
        for request in copy.loads.loads.keys { copy.loads[request]?.deadline = nil }
        return String(describing: copy)
    }

    /// Handles a frame of the feed like a shell.
    mutating func feed(_ frame: Bytes) {
        do throws(WireError) {
            let epoch = try Frame.header(of: frame).epoch
            switch try Frame.decodeFeedMessage(frame) {
            case .commit(let commit):
                answerBytesMax = max(answerBytesMax, frame.count)
                handle(.fed(commit, byteCount: frame.count, epoch: epoch))
            case .beat(let beat): handle(.beaten(beat, epoch: epoch))
            }
        } catch {
            require(!error.message.isEmpty, "no words")
        }
    }

    /// Answers the oldest message or another one, or loses it.
    mutating func answer(at index: Int, isLost: Bool = false, rejecting isRejected: Bool = false) {
        guard unanswered.indices.contains(index) else { return }
        let message = unanswered.remove(at: index)
        guard !isLost else { return }
        for reply in sequencer.answer(message, rejecting: isRejected) {
            take(Frame.encode(reply, epoch: sequencer.epoch)[...])
        }
    }

    mutating func dispatch(_ builder: BatchBuilder, isAtomic: Bool) {
        guard machine.canSubmit(bytes: builder.byteCount) else { return }
        dispatchedCount += UInt64(builder.count)
        var builder = builder
        handle(.dispatched(machine.batch(of: &builder, isAtomic: isAtomic)))
    }

    mutating func open(_ subject: HostingSubject) {
        let open = Open(
            request: nextRequest, subject: subject, versions: SupportedVersions(1), events: [],
            initial: EncodedState(coding: .json, bytes: [0x5B, 0x5D]))
        nextRequest += 1
        handle(.open(open))
    }

    /// Waits for the sequencer's latest number, or for the number of a receipt.
    mutating func wait(for receipt: SequenceNumber?) {
        let request = nextWait
        nextWait += 1
        waiting.insert(request)
        if let receipt {
            receipts[request] = receipt
            // Of the present term, whose number is known, or of another one, for which the node asks.
            let epoch = request.isMultiple(of: 2) ? sequencer.epoch : Epoch(1)
            let awaited = Receipt(
                log: sequencer.log, epoch: epoch, sequence: receipt, timestamp: Timestamp(0))
            handle(.await(awaited, request: request))
        } else {
            handle(.barrier(request: request))
        }
    }

    mutating func giveUp() {
        guard let request = waiting.min() else { return }
        waiting.remove(request)
        handle(.giveUp(request: request))
    }

    /// The applying thread finishes some of the deliveries.
    mutating func apply(_ count: Int) {
        let restored = restoring
        restoring = []
        for (store, through, request) in restored {
            handle(
                .reported(
                    .ready(.store(store), through: through, request: request),
                    resets: progress.resets))
        }
        let chunks = given
        given = []
        for chunk in chunks { handle(.given(chunk)) }
        let done = unapplied.prefix(count)
        unapplied.removeFirst(done.count)
        for delivery in done {
            progress.applied = max(progress.applied, delivery.last)
            if delivery.isCatchUp {
                progress.catchUpBytes += delivery.bytes
            } else {
                progress.liveBytes += delivery.bytes
            }
        }
        handle(.applied(progress))
    }

    mutating func answerQuestion(_ body: Answer.Body) {
        guard let question = asked.popLast() else { return }
        handle(.answer(Answer(number: question.number, isLast: true, node: nil, body: body)))
    }

    mutating func pass(_ interval: Duration) {
        let end = now + interval
        var ticks = 0
        while let due = machine.nextDeadline, due < end {
            now = max(now, due)
            handle(.tick)
            ticks += 1
            require(ticks < 5_000, "it never rests: \(machine.nextDeadline as Any) at \(now)")
        }
        now = end
        handle(.tick)
    }

    /// A new connection: everything in transit is lost.
    mutating func reconnect() {
        unanswered = []
        handle(.reconnected)
    }

    mutating func handle(_ input: ReplicaInput) {
        var effects: [ReplicaEffect] = []
        let seconds = now.components.seconds
        machine.handle(
            input, at: Moment(monotonic: now, wall: Timestamp(1_000 + seconds)), into: &effects)
        if isTraced { print("\(now): \(input)", effects.map { "    \($0)" }, separator: "\n") }
        require(!hasEnded || effects.isEmpty, "an ended node goes on: \(effects)")
        for effect in effects { perform(effect) }
        checkBounds()
    }

    // MARK: Effects

    private mutating func perform(_ effect: ReplicaEffect) {
        require(!hasEnded, "an effect behind the end: \(effect)")
        switch effect {
        case .send(let message):
            let frame = Frame.encode(message, by: machine.speaker)
            require(certain { try Frame.decodeNodeMessage(frame[...]) } == message, "\(message)")
            unanswered.append(message)
            if unanswered.count > Self.unansweredMax { unanswered.removeFirst() }
        case .deliver(let delivery): perform(delivery)
        case .give(let request): given = given.suffix(7) + [.none(of: request.place)]
        case .asked(let question): asked = [question]
        case .connect, .subscribe, .answered, .loaded, .event: break
        case .end: hasEnded = true
        }
    }

    private mutating func perform(_ delivery: Delivery) {
        switch delivery {
        case .commit(let commit, let bytes):
            if let delivered {
                require(
                    commit.first <= delivered.next && commit.last > delivered,
                    "\(commit.first)…\(commit.last) was delivered behind \(delivered)")
            }
            delivered = commit.last
            unapplied.append((commit.last, bytes, false))
        case .catchUp(let commit, let bytes, _):
            require(commit.last <= delivered ?? commit.last, "caught up with what is to come")
            unapplied.append((.zero, bytes, true))
        case .settle(let outcome):
            require(
                outcome.firstCounter == lastSettled + 1 || outcome.firstCounter == 1,
                "the outcome of \(outcome.firstCounter) came behind that of \(lastSettled)")
            lastSettled = outcome.firstCounter + UInt64(outcome.count) - 1
            settledCount += UInt64(outcome.count)
        case .reach(let request, _):
            require(waiting.remove(request) != nil, "\(request) was told twice, or never asked")
        case .reset:
            delivered = nil
            progress.resets += 1
            progress.applied = .zero
        case .restore(let store, _, _, _, _, _, let through, let request):
            restoring.append((store, through, request))
        case .passOver(let last): delivered = last
        case .begin, .compare, .attach, .opened, .migrate: break
        }
    }

    /// Checks every bound of the settings, and P5: every dispatched action has or will have one outcome.
    private mutating func checkBounds() {
        require(
            settledCount + machine.unsettledCount == dispatchedCount,
            "\(dispatchedCount) dispatched, \(settledCount) told, "
                + "\(machine.unsettledCount) open")
        require(!hasEnded || settledCount == dispatchedCount, "ended without outcomes")
        // When the node ends, its shell ends the remaining waits.
        require(
            hasEnded || machine.waiterCount == waiting.count,
            "\(machine.waiterCount) wait, and \(waiting.count) were not told")
        guard !hasEnded else { return }
        for bound in machine.bounds {
            require(bound.level <= bound.most, "\(bound)")
        }
        do throws(BrokenInvariant) { try machine.checkInvariants() } catch { fail("\(error)") }
        let settings = machine.settings
        require(
            machine.buffer.byteCount <= settings.bufferBytesMax, "\(machine.buffer.byteCount)")
        let recentBytes = machine.catchUps.recent.byteCount
        require(recentBytes <= settings.recentBytesMax, "\(recentBytes) bytes are kept")
        require(
            machine.outstandingBytes + machine.catchUps.outstandingBytes
                == unapplied.reduce(0) { $0 + $1.bytes },
            "\(machine.outstandingBytes) bytes are counted")
        // An answer is delivered completely. Above the bound, nothing more is fetched.
        require(
            machine.outstandingBytes <= settings.deliveryBytesMax + 2 * answerBytesMax,
            "\(machine.outstandingBytes) bytes are not applied")
    }
}
