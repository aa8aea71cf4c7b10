import ConfluxVocabulary

@testable import ConfluxProtocol

/// Messages of a sequencer, honest or not, and the contents of its log.
extension Dice {
    mutating func sequencerMessage(
        _ known: Surroundings, commits: [Bytes]
    ) -> SequencerMessage {
        switch below(16) {
        case 0, 1: .welcome(welcome(known))
        case 2: .opened(opened(known))
        case 3, 4: .receipts(Receipts(runs: list(upTo: 4) { $0.run(known) }))
        case 5:
            .rejection(
                Rejection(
                    firstCounter: counter(known), count: UInt32(1 + below(4)),
                    code: one(of: RejectionCode.self), message: text()))
        case 6:
            .expected(
                Expected(counter: counter(known), reason: one(of: Expected.Reason.self)))
        case 7, 8: .entries(entries(known, commits: commits))
        case 9: .question(question(known))
        case 10: .answer(answer(known))
        case 11:
            .snapshotServed(
                SnapshotServed(request: request(known), chunk: chunk(known)))
        case 12:
            .snapshotRequest(
                SnapshotRequest(
                    place: place(known), offset: number(near: [2]), limitBytes: UInt32(byte())))
        case 13: .divergence(divergence(known))
        case 14: .reload(Reload(place: place(known)))
        default: flag() ? .bye(bye()) : .confirmed(confirmed(known))
        }
    }

    private mutating func confirmed(_ known: Surroundings) -> Confirmed {
        Confirmed(
            request: request(known),
            outcome: below(4) == 0
                ? .failed(one(of: RejectionCode.self), message: text())
                : .confirmed(sequence(known)))
    }

    mutating func welcome(_ known: Surroundings) -> Welcome {
        Welcome(
            request: UInt64(1 + below(4)), log: log(known), claim: claim(known),
            incarnation: incarnation(known),
            last: sequence(known), floor: SequenceNumber(UInt64(below(4))),
            agreed: sequence(known), settled: number(near: known.counters),
            lastCounter: number(near: known.counters), feed: "feed",
            limits: SessionLimits(
                windowBytes: UInt32(byte()) * 64, batchBytesMax: UInt32(byte()) * 64,
                payloadBytesMax: UInt32(byte()), beatInterval: duration(),
                silenceMax: duration()))
    }

    private mutating func opened(_ known: Surroundings) -> Opened {
        let outcome: Opened.Outcome =
            below(4) == 0
            ? .failed(one(of: RejectionCode.self), message: text())
            : .opened(
                life: life(known), schemaVersion: version(), last: sequence(known),
                floor: sequence(known),
                snapshot: optional { $0.offer(known) },
                skipped: list(upTo: 2) { $0.sequence(known) })
        return Opened(request: request(known), outcome: outcome)
    }

    private mutating func run(_ known: Surroundings) -> Receipts.Run {
        Receipts.Run(
            firstCounter: counter(known), count: UInt32(1 + below(4)),
            firstSequence: SequenceNumber(max(sequence(known).rawValue, 1)), epoch: epoch(known),
            timestamp: Timestamp(0))
    }

    private mutating func entries(_ known: Surroundings, commits: [Bytes]) -> Entries {
        Entries(
            request: request(known), last: sequence(known),
            floor: SequenceNumber(below(4) == 0 ? sequence(known).rawValue : 1),
            commits: list(upTo: 3) { dice in
                dice.below(4) == 0
                    ? dice.commitFrame(known).dropFirst(Frame.size)
                    : dice.element(of: commits) ?? []
            }, damage: below(8) == 0 ? damage(known) : nil)
    }

    private mutating func damage(_ known: Surroundings) -> Damage {
        let first = max(sequence(known), SequenceNumber(1))
        return Damage(
            first: first, last: first.advanced(by: UInt64(below(8))), message: "not readable")
    }

    /// A commit that is in no log.
    mutating func commitFrame(_ known: Surroundings) -> Bytes {
        var builder = CommitBuilder(
            log: log(known), epoch: epoch(known), predecessor: epoch(known),
            first: SequenceNumber(
                min(max(sequence(known).rawValue, 1), UInt64(Int64.max) - 1_000)))
        for _ in 0...below(3) {
            if flag() {
                var batch = self.batch(known)
                if batch.isVoid || batch.firstCounter > UInt64(Int64.max) - 1_000 {
                    batch = GoodBatch.one
                }
                builder.append(batch, from: incarnation(known))
            } else {
                builder.append(event(known))
            }
        }
        return builder.finish(timestamp: Timestamp(Int64(byte())))
    }

    mutating func event(_ known: Surroundings) -> LogEvent {
        switch below(13) {
        case 0: .claim(epoch: epoch(known), nonce: nonce())
        case 1:
            .joined(
                nonce: nonce(), name: optional { $0.name() },
                rejoining: flag() ? .none : incarnation(known), isKeyed: flag())
        case 2: .left(incarnation(known))
        case 3: .forgotten(incarnation(known))
        case 4: .dropped(storeName(), life: SequenceNumber(max(life(known).rawValue, 1)))
        case 5:
            .upgraded(
                storeName(), life: place(known).life, schemaVersion: version(),
                base: place(known).sequence, digest: optional { $0.digest() })
        case 6:
            .frozen(storeName(), life: place(known).life, reason: one(of: FreezeReason.self))
        case 7: .thawed(storeName(), life: place(known).life)
        case 8: .digestPoint(storeName(), life: place(known).life)
        case 9: .skipped(place(known).sequence, target())
        case 10: .visited(nonce: nonce())
        case 11: .forked(from: nonce())
        default: .created(storeName(), schemaVersion: version(), initial: state())
        }
    }
}

/// An ordinary batch.
enum GoodBatch {
    static let one: Batch = {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .state(.shared), schemaVersion: 1, coding: .json),
            payload: [0x78])
        return builder.finish(firstCounter: 1, settled: 0)
    }()
}
