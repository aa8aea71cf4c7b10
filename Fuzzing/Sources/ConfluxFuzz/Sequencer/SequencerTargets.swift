import ConfluxVocabulary

@testable import ConfluxProtocol

extension FuzzTarget {
    /// The sequencer's machine with three kinds of input: any frames, well-formed inputs in any order, and
    /// the same inputs after a session was properly begun.
    static let sequencerTargets: [FuzzTarget] = [
        FuzzTarget(name: "sequencer-frames", lengthMax: 2_048) { bytes in
            var run = SequencerRun(Dice(bytes))
            run.land()
            while !run.dice.isEmpty {
                let connection = ConnectionID(rawValue: UInt64(run.dice.below(6)))
                let frame = run.dice.bytes(upTo: 300)
                run.take(frame[...], from: connection)
                run.settle()
                if connection.rawValue == 5 { run.pass(.milliseconds(150)) }
            }
            run.finish()
        },
        FuzzTarget(name: "sequencer-inputs", lengthMax: 512) { bytes in
            var run = SequencerRun(Dice(bytes))
            while !run.dice.isEmpty { run.step() }
            run.finish()
        },
        FuzzTarget(name: "sequencer-session", lengthMax: 512) { bytes in
            var run = SequencerRun(Dice(bytes))
            run.land()
            run.joinTwo()
            while !run.dice.isEmpty { run.step() }
            run.finish()
        },
        // A log that grows, is digested, saved and truncated.
        FuzzTarget(name: "sequencer-snapshots", lengthMax: 512) { bytes in
            var run = SequencerRun(Dice(bytes))
            run.land()
            run.joinTwo()
            while !run.dice.isEmpty {
                if run.dice.flag() { run.step() } else { run.live() }
            }
            run.finish()
        },
    ]
}

extension SequencerRun {
    private static let connections: UInt64 = 6

    /// Joins two nodes with names, which both host a store and dispatch an action each.
    mutating func joinTwo() {
        for (number, text) in [(UInt64(0), "a"), (1, "b")] {
            let connection = ConnectionID(rawValue: number)
            sayHonestly(
                .hello(
                    Hello(
                        request: 1, nonce: Identifier(high: 42, low: number), name: Name(text),
                        role: .member)),
                from: connection)
            settle()
            guard let store = StoreName("list") else { continue }
            sayHonestly(
                .open(
                    Open(
                        request: 1, subject: .store(store), versions: SupportedVersions(1),
                        events: [],
                        initial: EncodedState(coding: .json, bytes: [0x5B, 0x5D]))),
                from: connection)
            settle()
            var builder = BatchBuilder()
            builder.append(
                target: BatchTarget(target: .store(store), schemaVersion: 1, coding: .json),
                payload: [0x31])
            sayHonestly(.submit(builder.finish(firstCounter: 1, settled: 0)), from: connection)
            settle()
        }
        require(machine.sessions.count == 2 && log.lives.count == 1, "two nodes did not join")
        require(log.places.values.allSatisfy { $0[1] != nil }, "their actions are not in the log")
    }

    /// Makes one decision.
    mutating func step() {
        switch dice.below(28) {
        case 24: vote()
        case 25: if let (message, connection) = give() { say(message, from: connection) }
        case 26: answerSave()
        case 27: saveCheckpoint()
        case 20...23: ask()
        case 0...4: say(dice.nodeMessage(surroundings), from: connection())
        case 5: say(.hello(dice.hello(surroundings)), from: connection())
        case 6, 7: submitNext()
        case 8, 9: settle()
        case 10: land()
        case 11: handle(.drained)
        case 12: pass(.milliseconds(dice.below(256)))
        case 13: pass(.milliseconds(dice.below(256) * 30))
        case 14: answerFetch()
        case 15: confirmTerm()
        case 16: take(dice.bytes(upTo: 40)[...], from: connection())
        case 17: handle(dice.flag() ? .subscribed : .disconnected(connection()))
        case 18:
            if dice.flag() { restart(losing: dice.flag()) } else { rejoin() }
        default: endTerm()
        }
    }

    /// Makes the log long, and its beginning unnecessary.
    mutating func live() {
        switch dice.below(8) {
        case 0...2:
            grow()
            settle()
        case 3:
            vote()
            vote()
        case 4, 5:
            for _ in 0..<3 {
                if let (message, connection) = give() { say(message, from: connection) }
                answerSave()
            }
        case 6: saveCheckpoint()
        default:
            settle()
            pass(.milliseconds(700))
        }
    }

    private mutating func vote() {
        let connection = connection()
        if let message = vote(on: connection) { say(message, from: connection) }
    }

    /// Fills a node's window with actions, enough for the log's marks.
    private mutating func grow() {
        let connection = ConnectionID(rawValue: UInt64(dice.below(2)))
        guard case .member(let incarnation) = machine.connections[connection],
            let ledger = machine.sessions[incarnation]?.ledger
        else { return }
        var builder = BatchBuilder()
        let target = dice.target()
        let row = BatchTarget(target: target, schemaVersion: 1, coding: .json)
        for _ in 0..<60 {
            builder.append(target: row, payload: [UInt8](repeating: 0x31, count: 60))
        }
        say(
            .submit(
                builder.finish(firstCounter: ledger.lastCounter + 1, settled: ledger.announced)),
            from: connection)
    }

    private mutating func connection() -> ConnectionID {
        ConnectionID(rawValue: UInt64(dice.below(Int(Self.connections))))
    }

    private mutating func say(_ message: NodeMessage, from connection: ConnectionID) {
        var speaker = speaker(on: connection)
        switch dice.below(32) {
        case 30: speaker.epoch = dice.epoch(surroundings)
        case 31: speaker.session = dice.incarnation(surroundings)
        default: break
        }
        take(Frame.encode(message, by: speaker)[...], from: connection)
    }

    private mutating func sayHonestly(_ message: NodeMessage, from connection: ConnectionID) {
        take(Frame.encode(message, by: speaker(on: connection))[...], from: connection)
    }

    private func speaker(on connection: ConnectionID) -> Speaker {
        Speaker(epoch: log.epoch, session: machine.connections[connection]?.session ?? .none)
    }

    /// Submits what an honest node would dispatch next.
    private mutating func submitNext() {
        let connection = connection()
        guard case .member(let incarnation) = machine.connections[connection],
            let ledger = machine.sessions[incarnation]?.ledger
        else { return }
        var known = surroundings
        known.counters = [ledger.lastCounter + 1]
        var builder = BatchBuilder()
        let count = 1 + dice.below(6)
        for _ in 0..<count {
            let row = BatchTarget(target: dice.target(), schemaVersion: 1, coding: .json)
            builder.append(target: row, payload: [0x31])
        }
        let settled = dice.flag() ? ledger.announced : ledger.settled
        let batch = builder.finish(
            firstCounter: ledger.lastCounter + 1, settled: settled, isAtomic: dice.flag())
        say(.submit(batch), from: connection)
    }

    /// Sends the requests of an honest node, so many of them that bounds are reached.
    private mutating func ask() {
        let connection = connection()
        let store = dice.element(of: log.lives.keys.sorted()) ?? dice.storeName()
        switch dice.below(7) {
        case 6:
            let life = log.lives[store] ?? SequenceNumber(1)
            say(.drop(Drop(request: 1, store: store, life: life)), from: connection)
        case 0...2:
            let body = Question.Body.observe(store, node: nil, after: .zero)
            say(
                .question(Question(number: 1, patience: .seconds(9), body: body)),
                from: connection)
        case 3, 4:
            say(
                .fetch(Fetch(request: 1, from: SequenceNumber(1), limitBytes: 100)),
                from: connection)
        default:
            say(
                .hello(Hello(request: 1, nonce: dice.nonce(), name: nil, role: .observer)),
                from: connection)
        }
    }

    /// An honest node says hello again.
    private mutating func rejoin() {
        guard let incarnation = dice.element(of: machine.sessions.incarnations),
            let session = machine.sessions[incarnation]
        else { return }
        let hello = Hello(
            request: session.greeting + UInt64(dice.below(3)), nonce: session.nonce,
            name: session.name, role: .member,
            session: SessionToken(log: log.id, incarnation: incarnation))
        say(.hello(hello), from: connection())
    }

    private mutating func endTerm() {
        switch dice.below(6) {
        case 0: handle(.logFailed(.logFailed("the disk is gone")))
        case 1: handle(.logFailed(.superseded))
        case 2: handle(.stop)
        default: return
        }
        // A stopping term commits what it admitted, and then ends.
        while machine.phase == .stopping { land() }
        require(machine.phase == .ended, "a term that is to end is \(machine.phase)")
        restart(losing: dice.flag())
        settle()
    }
}
