import ConfluxVocabulary

@testable import ConfluxProtocol

/// Draws random messages of every kind, with every alternative.
struct RandomMessages {
    var random: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
    }

    mutating func message() -> AnyMessage {
        switch below(33) {
        case 0: .node(.hello(hello()))
        case 1: .node(.open(open()))
        case 2: .node(.close(Close(subject: subject())))
        case 3: .node(.submit(below(4) == 0 ? void() : flag() ? batch() : conditionalBatch()))
        case 4:
            .node(
                .fetch(
                    Fetch(
                        request: random.next(), from: sequence(), limitBytes: word(),
                        acknowledged: random.next())))
        case 5:
            .node(
                .progress(
                    Progress(
                        applied: sequence(), settled: number(), stopped: list { $0.stopped() })))
        case 6: .node(.question(question()))
        case 7: .node(.answer(answer()))
        case 8: .node(.bye(bye()))
        case 9: .sequencer(.welcome(welcome()))
        case 10: .sequencer(.opened(opened()))
        case 11: .sequencer(.receipts(Receipts(runs: list { $0.run() })))
        case 12: .sequencer(.rejection(rejection()))
        case 13:
            .sequencer(
                .expected(
                    Expected(counter: start(), reason: element(of: Expected.Reason.self))))
        case 14: .sequencer(.entries(entries()))
        case 15: .sequencer(.question(question()))
        case 16: .sequencer(.answer(answer()))
        case 17: .sequencer(.bye(bye()))
        case 18: .node(.barrier(Barrier(request: random.next())))
        case 19: .sequencer(.confirmed(confirmed()))
        case 20:
            .node(
                .drop(
                    Drop(
                        request: random.next(), store: storeName(),
                        life: SequenceNumber(start()))))
        case 21: .feed(.beat(Beat(log: identifier(), last: sequence(), floor: sequence())))
        case 22: .node(.digest(report()))
        case 23: .node(.load(load()))
        case 24: .node(.snapshot(chunk()))
        case 25: .node(flag() ? .skip(skip()) : .freeze(freeze()))
        case 26:
            .sequencer(
                .snapshotServed(
                    SnapshotServed(
                        request: random.next(), deliveryTag: random.next(), chunk: chunk())))
        case 27: .sequencer(.snapshotRequest(snapshotRequest()))
        case 28: .sequencer(.divergence(divergence()))
        case 29: .sequencer(.reload(Reload(place: place())))
        case 30: .sequencer(.redirect(Redirect(request: random.next(), address: text())))
        default: .feed(.commit(commit()))
        }
    }

    mutating func batch() -> Batch {
        var builder = BatchBuilder()
        let targets = (0...below(5)).map { _ in batchTarget() }
        for _ in 0...below(20) {
            let target = targets[below(targets.count)]
            builder.append(target: target, payload: below(10) == 0 ? bytes(300) : bytes(20))
        }
        return builder.finish(
            firstCounter: start(), settled: number(), isAtomic: flag())
    }

    mutating func void() -> Batch {
        .void(firstCounter: start(), count: UInt32(1 + below(65_536)), settled: number())
    }

    mutating func commit() -> Commit {
        do {
            return try Commit.decode(body: commitFrame().dropFirst(Frame.size))
        } catch {
            preconditionFailure("what was built does not decode: \(error)")
        }
    }

    mutating func commitFrame() -> Bytes {
        var builder = CommitBuilder(
            log: identifier(), epoch: epoch(), predecessor: epoch(),
            first: SequenceNumber(start()))
        for _ in 0...below(5) {
            if flag() {
                builder.append(batch(), from: incarnation())
            } else {
                builder.append(event())
            }
        }
        return builder.finish(timestamp: timestamp())
    }

    mutating func event() -> LogEvent {
        switch below(14) {
        case 0: .claim(epoch: epoch(), nonce: identifier())
        case 1:
            .joined(
                nonce: identifier(), name: optional { $0.name() }, rejoining: incarnation(),
                isKeyed: flag())
        case 2: .left(incarnation())
        case 3: .forgotten(incarnation())
        case 4: .dropped(storeName(), life: SequenceNumber(start()))
        case 5:
            .upgraded(
                storeName(), life: SequenceNumber(start()), schemaVersion: word(),
                base: SequenceNumber(start()), digest: optional { $0.digest() })
        case 6:
            .frozen(
                storeName(), life: SequenceNumber(start()),
                reason: element(of: FreezeReason.self))
        case 7: .thawed(storeName(), life: SequenceNumber(start()))
        case 8: .digestPoint(storeName(), life: SequenceNumber(start()))
        case 9: .skipped(SequenceNumber(start()), target())
        case 10: .visited(nonce: identifier())
        case 11: .handles(name(), events: [name()] + list { $0.name() })
        case 12: .forked(from: identifier())
        default: .created(storeName(), schemaVersion: word(), initial: state())
        }
    }

    private mutating func hello() -> Hello {
        Hello(
            request: random.next(), nonce: identifier(), name: optional { $0.name() },
            role: element(of: Hello.Role.self), process: optional { $0.identifier() },
            session: optional { SessionToken(log: $0.identifier(), incarnation: $0.incarnation()) },
            history: optional {
                HistoryMark(
                    log: $0.identifier(), sequence: $0.sequence(), epoch: $0.epoch(),
                    claim: $0.identifier())
            },
            hosted: list {
                HostedStore(
                    store: $0.storeName(), life: $0.sequence(), versions: $0.versions())
            },
            bridged: list { StateBridge(state: $0.name(), schemaVersion: $0.word()) })
    }

    private mutating func versions() -> SupportedVersions {
        SupportedVersions(word(), oldest: word(), policy: element(of: UpgradePolicy.self))
    }

    private mutating func open() -> Open {
        var open = Open(
            request: random.next(), subject: subject(), versions: versions(),
            events: list { $0.name() }, initial: state())
        if case .state = open.subject { open.shapes = optional { $0.bytes(50) } }
        return open
    }

    private mutating func welcome() -> Welcome {
        Welcome(
            request: random.next(), log: identifier(), claim: identifier(),
            incarnation: incarnation(),
            last: sequence(),
            floor: sequence(), agreed: sequence(), settled: number(),
            lastCounter: number(),
            feed: text(),
            limits: SessionLimits(
                windowBytes: word(), batchBytesMax: word(), payloadBytesMax: word(),
                beatInterval: duration(), silenceMax: duration()))
    }

    private mutating func opened() -> Opened {
        let outcome: Opened.Outcome =
            flag()
            ? .failed(element(of: RejectionCode.self), message: text())
            : .opened(
                life: SequenceNumber(start()), schemaVersion: word(), last: sequence(),
                floor: sequence(), snapshot: optional { $0.offer() },
                aside: optional { $0.reference() },
                skipped: list { $0.sequence() }, migrated: optional { $0.digest() })
        return Opened(request: random.next(), outcome: outcome)
    }

    private mutating func run() -> Receipts.Run {
        Receipts.Run(
            firstCounter: start(), count: word() | 1,
            firstSequence: SequenceNumber(start()), epoch: epoch(), timestamp: timestamp())
    }

    private mutating func rejection() -> Rejection {
        Rejection(
            firstCounter: start(), count: word() | 1, code: element(of: RejectionCode.self),
            message: text(), version: optional { $0.version() })
    }

    private mutating func confirmed() -> Confirmed {
        let outcome: Confirmed.Outcome =
            flag()
            ? .failed(element(of: RejectionCode.self), message: text()) : .confirmed(sequence())
        return Confirmed(request: random.next(), outcome: outcome)
    }

    private mutating func entries() -> Entries {
        Entries(
            request: random.next(), last: sequence(), floor: sequence(),
            deliveryTag: random.next(),
            commits: list { $0.commitFrame().dropFirst(Frame.size) },
            damage: optional { $0.damage() })
    }

    private mutating func damage() -> Damage {
        let first = UInt64(1 + below(1_000))
        return Damage(
            first: SequenceNumber(first), last: SequenceNumber(first + UInt64(below(9))),
            message: text())
    }

    private mutating func question() -> Question {
        let body: Question.Body
        switch below(10) {
        case 0: body = .status
        case 8: body = .timers(behind: sequence())
        case 4: body = .sequencers
        case 7: body = .start(storeName())
        case 5: body = .handOver(to: optional { $0.text() })
        case 6: body = .shapes(name())
        case 3: body = .reload
        case 1: body = .observe(storeName(), node: optional { $0.name() }, after: sequence())
        case 2: body = .applied(sequence(), target())
        default: body = .alive
        }
        return Question(
            number: random.next(), patience: duration(), acknowledged: random.next(), body: body)
    }

    private mutating func answer() -> Answer {
        let body: Answer.Body
        switch below(13) {
        case 0: body = .status(status())
        case 11: body = .timers(list { $0.timerStatus() })
        case 10:
            return Answer(
                number: random.next(), isLast: flag(), node: optional { $0.name() },
                deliveryTag: random.next(), body: .start(storeName(), opened().outcome),
                earlier: optional {
                    EarlierStart(
                        snapshot: $0.optional { $0.reference() }, skipped: $0.list { $0.sequence() }
                    )
                })
        case 8:
            body = .sequencers(
                list {
                    SequencerPlace(
                        address: $0.text(), isServing: $0.flag(), last: $0.sequence())
                })
        case 9: body = .handingOver(to: text())
        case 7: body = .reloaded(count: UInt32(below(9)))
        case 1: body = .state(storeName(), sequence(), bytes(50))
        case 2: body = .applied
        case 3: body = .refused(message: text())
        case 4: body = .failed(element(of: QuestionFailure.self), message: text())
        case 5: body = .stopped(at: sequence(), message: text())
        case 6: body = .concernedNobody
        default: body = .alive
        }
        return Answer(
            number: random.next(), isLast: flag(), node: optional { $0.name() },
            deliveryTag: random.next(), body: body)
    }

    private mutating func status() -> SequencerStatus {
        SequencerStatus(
            log: identifier(), epoch: epoch(), last: sequence(), floor: sequence(),
            checkpoint: sequence(),
            sessions: list {
                SessionStatus(
                    incarnation: $0.incarnation(), name: $0.optional { $0.name() },
                    owner: $0.optional { $0.name() }, isLive: $0.flag(), applied: $0.sequence(),
                    lastCounter: $0.number(),
                    hosted: $0.list { $0.storeName() }, bridged: $0.list { $0.name() })
            },
            stores: list {
                StoreStatus(
                    store: $0.storeName(), life: $0.sequence(), schemaVersion: $0.word(),
                    hosts: $0.word(), snapshot: $0.sequence(), isFrozen: $0.flag(),
                    divergence: $0.optional { $0.divergenceStatus() },
                    stopped: $0.list {
                        StoppedReplica(node: $0.incarnation(), sequence: $0.sequence())
                    })
            },
            health: optional {
                SequencerHealth(
                    usedBytes: $0.number(), limitBytes: $0.number(),
                    freeBytes: $0.optional { $0.number() }, held: $0.optional { $0.text() },
                    isSlowed: $0.flag(), isClockBehind: $0.flag(),
                    bounds: $0.list { Bound($0.text(), $0.below(9), of: $0.below(9)) })
            })
    }

    private mutating func bye() -> Bye {
        Bye(code: element(of: ByeCode.self), message: text(), answering: random.next())
    }

    private mutating func subject() -> HostingSubject {
        flag() ? .store(storeName()) : .state(name())
    }

    mutating func batchTarget() -> BatchTarget {
        BatchTarget(
            target: target(), life: sequence(), schemaVersion: word(),
            coding: element(of: PayloadCoding.self))
    }

    /// A batch of which some rows have a condition.
    mutating func conditionalBatch() -> Batch {
        var builder = BatchBuilder()
        for _ in 0...below(5) {
            var row = batchTarget()
            if case .store = row.target { row.unchangedSince = optional { $0.version() } }
            builder.append(target: row, payload: bytes(20))
        }
        return builder.finish(firstCounter: start(), settled: number(), isAtomic: flag())
    }

    mutating func version() -> StoreVersion {
        StoreVersion(sequence: sequence(), epoch: epoch())
    }

    mutating func target() -> Target {
        switch below(3) {
        case 0: .store(storeName())
        case 1: .state(name())
        default: .event(name(), of: flag() ? list { $0.name() } : [])
        }
    }

    mutating func state() -> EncodedState {
        EncodedState(coding: element(of: PayloadCoding.self), bytes: bytes(200))
    }

    mutating func storeName() -> StoreName {
        StoreName(state: name(), instance: name())
    }

    mutating func name() -> Name {
        let alphabet = Array("abcdefghijklmnopqrstuvwxyz0123456789._-")
        let length = below(8) == 0 ? 64 : 1 + below(12)
        return Name(String((0..<length).map { _ in alphabet[below(alphabet.count)] }))!
    }

    mutating func text() -> String {
        let pieces = ["", "a", "Überlauf", "店", "🦀", "\u{0}", "e\u{301}"]
        return (0..<below(6)).map { _ in pieces[below(pieces.count)] }.joined()
    }

    mutating func bytes(_ most: Int) -> Bytes {
        let run = (0..<below(most + 1)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        return run[...]
    }

    /// A random number of any size. Zero and the largest one are more frequent.
    mutating func number() -> UInt64 {
        switch below(8) {
        case 0: 0
        case 1: UInt64(Int64.max)
        default: random.next() >> UInt64(1 + below(63))
        }
    }

    /// A random number with which a run of any length may begin.
    mutating func start() -> UInt64 {
        min(number() | 1, UInt64(Int64.max) - UInt64(UInt32.max))
    }

    mutating func word() -> UInt32 { UInt32(truncatingIfNeeded: random.next()) }
    mutating func sequence() -> SequenceNumber { SequenceNumber(number()) }
    mutating func epoch() -> Epoch { Epoch(number()) }
    mutating func incarnation() -> Incarnation { Incarnation(number()) }
    private mutating func timestamp() -> Timestamp { Timestamp(Int64(bitPattern: random.next())) }
    mutating func duration() -> Duration { .nanoseconds(Int64(number())) }
    private mutating func identifier() -> Identifier { .random(using: &random) }
    mutating func flag() -> Bool { random.next() & 1 == 1 }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    mutating func element<Value: CaseIterable>(of type: Value.Type) -> Value {
        type.allCases.randomElement(using: &random)!
    }

    mutating func optional<Value>(_ draw: (inout Self) -> Value) -> Value? {
        flag() ? draw(&self) : nil
    }

    mutating func list<Value>(_ draw: (inout Self) -> Value) -> [Value] {
        (0..<below(4)).map { _ in draw(&self) }
    }
}
