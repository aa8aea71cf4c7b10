import ConfluxVocabulary

@testable import ConfluxProtocol

/// One node and the sequencer that it is made to believe in, driven by the dice. Whatever it is
/// told, every action that it dispatched has one outcome, and what it delivers has no hole.
struct ReplicaRun {
    var dice: Dice
    private(set) var machine: ReplicaMachine
    var sequencer = PretendedSequencer()
    private var now = Duration.zero
    /// What the node said and nobody answered yet. *Bounded*: the oldest is lost.
    private(set) var unanswered: [NodeMessage] = []
    /// What was delivered and is not applied.
    private var unapplied: [(last: SequenceNumber, bytes: Int, isCatchUp: Bool)] = []
    private var progress = ApplyProgress()
    /// What is given a state, and has not said so.
    private var restoring: [(store: StoreName, through: SequenceNumber, request: UInt64)] = []
    /// What it was asked for of its states.
    private var given: [SnapshotChunk] = []
    private var delivered: SequenceNumber?
    /// How many actions were dispatched, and how many have been told their outcome.
    private var dispatchedCount: UInt64 = 0
    private var settledCount: UInt64 = 0
    private var lastSettled: UInt64 = 0
    /// The most bytes of one answer to a fetch, and of one commit, so far.
    private var answerBytesMax = 0
    private var hasEnded = false
    private(set) var asked: [Question] = []
    private var nextRequest: UInt64 = 1
    /// Who waits for a number, and was told nothing yet.
    private(set) var waiting: Set<UInt64> = []
    /// The numbers that some of them wait for; the others wait for what the sequencer says.
    private(set) var receipts: [UInt64: SequenceNumber] = [:]
    private var nextWait: UInt64 = 1

    init(_ dice: Dice) {
        self.dice = dice
        machine = ReplicaMachine(
            settings: Self.settings, nonce: Identifier(high: 42, low: 1))
        handle(.start)
    }

    /// Bounds that are reached soon.
    static let settings: ReplicaSettings = {
        var settings = ReplicaSettings(name: Name("a"), role: .member)
        settings.bufferBytesMax = 600
        settings.recentBytesMax = 600
        settings.deliveryBytesMax = 500
        settings.fetchBytes = 300
        settings.catchUpBytesMax = 400
        return settings
    }()

    /// Above what a window of batches and an answer to each make, so that a session can recover.
    private static let unansweredMax = 512

    // MARK: Inputs

    /// What a shell does with a frame of the sequencer.
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
                // Nothing of an epoch is believed before its welcome, nothing of an older one ever.
                let isIgnored = !machine.isJoined || epoch < machine.epoch
                let before = isIgnored ? withoutStale : ""
                handle(.received(message, epoch: epoch))
                require(!isIgnored || withoutStale == before, "\(message) changed the machine")
            }
        } catch {
            require(!error.message.isEmpty, "no words")
        }
    }

    /// The machine, but for what only says that it told of a stale sequencer once.
    private var withoutStale: String {
        var copy = machine
        copy.staleEpoch = .none
        return String(describing: copy)
    }

    /// What a shell does with a frame of the feed.
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

    /// Answers the oldest, or another one; or loses it.
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
        handle(.dispatched(builder, isAtomic: isAtomic))
    }

    mutating func open(_ subject: HostingSubject) {
        let open = Open(
            request: nextRequest, subject: subject, schemaVersion: 1, events: [],
            initial: EncodedState(coding: .json, bytes: [0x5B, 0x5D]))
        nextRequest += 1
        handle(.open(open))
    }

    /// Waits for the sequencer's latest number, or for one of a receipt.
    mutating func wait(for receipt: SequenceNumber?) {
        let request = nextWait
        nextWait += 1
        waiting.insert(request)
        if let receipt {
            receipts[request] = receipt
            // Of the present tenure, whose number is known, or of another one, for which it asks.
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

    /// The thread that applies is done with some of what was delivered.
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

    /// A new connection: what was on its way is lost.
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
        case .connect, .subscribe, .answered, .event: break
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
        case .restore(let store, _, _, _, _, let through, let request):
            restoring.append((store, through, request))
        case .passOver(let last): delivered = last
        case .begin, .compare, .attach, .opened: break
        }
    }

    /// Every bound of the settings, and P5: what was dispatched has, or will have, one outcome.
    private mutating func checkBounds() {
        require(
            settledCount + machine.unsettledCount == dispatchedCount,
            "\(dispatchedCount) dispatched, \(settledCount) told, "
                + "\(machine.unsettledCount) open")
        require(!hasEnded || settledCount == dispatchedCount, "ended without outcomes")
        // What waits when the node ends is told by who runs it.
        require(
            hasEnded || machine.waiterCount == waiting.count,
            "\(machine.waiterCount) wait, and \(waiting.count) were not told")
        guard !hasEnded else { return }
        for bound in machine.bounds {
            require(bound.level <= bound.most, "\(bound)")
        }
        let settings = machine.settings
        require(
            machine.buffer.byteCount <= settings.bufferBytesMax, "\(machine.buffer.byteCount)")
        let recentBytes = machine.catchUps.recent.byteCount
        require(recentBytes <= settings.recentBytesMax, "\(recentBytes) bytes are kept")
        require(
            machine.outstandingBytes + machine.catchUps.outstandingBytes
                == unapplied.reduce(0) { $0 + $1.bytes },
            "\(machine.outstandingBytes) bytes are counted")
        // An answer is delivered whole; nothing is asked for above the bound.
        require(
            machine.outstandingBytes <= settings.deliveryBytesMax + 2 * answerBytesMax,
            "\(machine.outstandingBytes) bytes are not applied")
        require(machine.applied <= machine.live ?? machine.applied, "applied what is to come")
    }
}
