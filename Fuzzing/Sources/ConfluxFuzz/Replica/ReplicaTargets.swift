import ConfluxVocabulary

@testable import ConfluxProtocol

extension FuzzTarget {
    /// A node's machine with three kinds of input: any frames, well-formed inputs in any order, and an
    /// honest sequencer whose frames may be lost, late and doubled.
    static let replicaTargets: [FuzzTarget] = [
        FuzzTarget(name: "replica-frames", lengthMax: 2_048) { bytes in
            var run = ReplicaRun(Dice(bytes))
            run.join()
            while !run.dice.isEmpty {
                let isFeed = run.dice.flag()
                let frame = run.dice.bytes(upTo: 300)
                if isFeed { run.feed(frame[...]) } else { run.take(frame[...]) }
                run.apply(run.dice.below(4))
            }
        },
        FuzzTarget(name: "replica-inputs", lengthMax: 512) { bytes in
            var run = ReplicaRun(Dice(bytes))
            while !run.dice.isEmpty { run.step(isHonest: false) }
            run.handle(.leave)
        },
        FuzzTarget(name: "replica-session", lengthMax: 512) { bytes in
            var run = ReplicaRun(Dice(bytes))
            run.join()
            while !run.dice.isEmpty { run.step(isHonest: true) }
            run.recover()
            run.handle(.leave)
        },
    ]
}

extension ReplicaRun {
    /// Begins a session with a store that has caught up, and an action with its outcome.
    mutating func join() {
        answerAll()
        if let store = StoreName("list") { open(.store(store)) }
        feed(Frame.encode(sequencer.beat, epoch: sequencer.epoch)[...])
        answerAll()
        apply(0)
        answerAll()
        dispatch(builder(of: 2), isAtomic: false)
        answerAll()
        if let frame = sequencer.frames.last { feed(frame) }
        answerAll()
        apply(10)
        require(
            machine.isJoined && machine.isSettled && machine.live == sequencer.last,
            "it did not join")
    }

    /// Checks liveness: once faults stop, everything becomes current and has its outcome.
    mutating func recover() {
        for _ in 0..<60 where machine.phase != .ended {
            answerAll()
            apply(.max)
            feed(Frame.encode(sequencer.beat, epoch: sequencer.epoch)[...])
            pass(.milliseconds(100))
        }
        guard machine.phase != .ended else { return }
        require(machine.isJoined, "it is \(machine.phase)")
        require(machine.isSettled, "\(machine.unsettledCount) actions have no outcome")
        require(
            machine.live == nil || machine.live == sequencer.last,
            "it is at \(machine.live as Any), and the log at \(sequencer.last)")
        require(machine.catchUps.isEmpty, "a store does not catch up")
        // Nobody knows when a number that the log lost is assigned again.
        let late = waiting.filter { receipts[$0, default: .zero] <= sequencer.last }
        require(late.isEmpty, "\(late) wait for ever")
    }

    private mutating func answerAll() {
        var rounds = 0
        while !unanswered.isEmpty, rounds < 1_000 {
            answer(at: 0)
            rounds += 1
        }
    }

    private mutating func builder(of count: Int) -> BatchBuilder {
        var builder = BatchBuilder()
        for _ in 0..<count {
            let row = BatchTarget(target: dice.target(), schemaVersion: 1, coding: .json)
            builder.append(target: row, payload: [0x31])
        }
        return builder
    }

    /// Makes one decision.
    mutating func step(isHonest: Bool) {
        switch dice.below(20) {
        case 0, 1: dispatch(builder(of: 1 + dice.below(3)), isAtomic: dice.flag())
        case 2: open(dice.subject())
        case 3: handle(.close(dice.subject()))
        case 4...7: answer(at: 0, rejecting: dice.below(8) == 0)
        case 8: answer(at: dice.below(16))
        case 9: answer(at: dice.below(16), isLost: true)
        case 10, 11:
            let recent = Array(sequencer.frames.suffix(8))
            if let frame = dice.element(of: recent) { feed(frame) }
        case 12: feed(Frame.encode(sequencer.beat, epoch: sequencer.epoch)[...])
        case 13: apply(1 + dice.below(4))
        case 14: pass(.milliseconds(dice.below(256) * (dice.flag() ? 20 : 1)))
        case 15: if dice.flag() { reconnect() } else { handle(.feedReconnected) }
        case 16:
            if dice.flag() {
                sequencer.append(GoodBatch.one, from: Incarnation(1))
            } else {
                restartSequencer()
            }
        case 17: userInput()
        default: if isHonest { answer(at: 0) } else { lie() }
        }
    }

    private mutating func restartSequencer() {
        sequencer.restart(
            losing: dice.below(4) == 0 ? dice.below(4) : 0, ofAnotherLog: dice.below(8) == 0)
    }

    private mutating func userInput() {
        switch dice.below(7) {
        case 6:
            // Withdraws some of the last actions. Those with an outcome keep it.
            let next = machine.nextCounter
            let first = next - min(next - 1, UInt64(1 + dice.below(4)))
            if first < next { handle(.withdraw([first..<next])) }
        case 0: handle(.follow(from: min(dice.sequence(sequencer.surroundings), sequencer.last)))
        case 1: handle(.ask(dice.question(sequencer.surroundings)))
        case 2: answerQuestion(.applied)
        case 3:
            let place = dice.place(sequencer.surroundings)
            switch dice.below(8) {
            case 0: handle(.leave)
            case 1:
                handle(.reported(.reload(place.store), resets: UInt64(dice.below(2))))
            case 2:
                let stopped = StoppedStore(
                    store: place.store, life: place.life, sequence: place.sequence)
                handle(.reported(.stopped(stopped), resets: UInt64(dice.below(2))))
            case 3:
                if case .vote(let vote) = dice.report(sequencer.surroundings) {
                    handle(.reported(.digested(vote), resets: UInt64(dice.below(2))))
                }
            default: break
            }
        case 4:
            let code = dice.flag() ? ByeCode.rejoin : .leaving
            let bye = SequencerMessage.bye(Bye(code: code, message: ""))
            take(Frame.encode(bye, epoch: sequencer.epoch)[...])
        default:
            switch dice.below(6) {
            case 0, 1: wait(for: nil)
            case 2: wait(for: min(dice.sequence(sequencer.surroundings), sequencer.last))
            case 3: giveUp()
            default: apply(.max)
            }
        }
    }

    /// Sends what no honest sequencer would send.
    private mutating func lie() {
        let known = sequencer.surroundings
        let epoch = dice.epoch(known)
        if dice.below(3) == 0 {
            feed(dice.commitFrame(known))
        } else {
            let message = dice.sequencerMessage(known, commits: sequencer.bodies)
            take(Frame.encode(message, epoch: epoch)[...])
        }
    }
}
