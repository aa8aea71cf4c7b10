import ConfluxVocabulary

@testable import ConfluxProtocol

/// A deliberately simple sequencer for one node: it answers at once, and keeps all outcomes.
struct PretendedSequencer {
    private(set) var log: LogID = Identifier(high: 7, low: 1)
    private(set) var epoch = Epoch(1)
    private(set) var last = SequenceNumber.zero
    /// The frames of the feed, in ascending order.
    private(set) var frames: [Bytes] = []
    private(set) var incarnation = Incarnation.none
    private(set) var lives: [StoreName: SequenceNumber] = [:]
    private var lastEpoch = Epoch.none
    /// The outcomes of the session's actions: a number and its epoch, or nil for a rejected action.
    private var outcomes: [(sequence: SequenceNumber, epoch: Epoch)?] = []

    init() { append(.claim(epoch: epoch, nonce: claim)) }

    var claim: Nonce { Identifier(high: 99, low: epoch.rawValue) }
    var beat: Beat { Beat(log: log, last: last, floor: SequenceNumber(1)) }
    var bodies: [Bytes] { frames.map { $0.dropFirst(Frame.size) } }

    var surroundings: Surroundings {
        let next = UInt64(outcomes.count) + 1
        return Surroundings(
            log: log, epoch: epoch, claim: claim, last: last, incarnations: [incarnation],
            lives: lives.values.sorted(), counters: [next, max(next, 2) - 1],
            requests: [1, 2, 3, 4])
    }

    // MARK: The log

    mutating func append(_ event: LogEvent) { append { $0.append(event) } }

    /// Appends another node's action.
    mutating func append(_ batch: Batch, from other: Incarnation) {
        append { $0.append(batch, from: other) }
    }

    private mutating func append(_ fill: (inout CommitBuilder) -> Void) {
        var builder = CommitBuilder(
            log: log, epoch: epoch, predecessor: lastEpoch, first: last.next)
        fill(&builder)
        last = SequenceNumber(builder.next.rawValue - 1)
        frames.append(builder.finish(timestamp: Timestamp(0)))
        lastEpoch = epoch
    }

    /// Begins another term of a log that lost its last commits, or of another log.
    mutating func restart(losing count: Int, ofAnotherLog isOther: Bool) {
        epoch = epoch.raised(by: 1)
        frames.removeLast(min(count, frames.count))
        if isOther {
            log = Identifier(high: 7, low: log.low + 1)
            frames = []
            incarnation = .none
            outcomes = []
        }
        let end = frames.last.map { frame in certain { try commit(of: frame) } }
        last = end?.last ?? .zero
        lastEpoch = end?.epoch ?? .none
        lives = lives.filter { $0.value <= last }
        if incarnation.rawValue > last.rawValue {
            incarnation = .none
            outcomes = []
        }
        if let lost = outcomes.firstIndex(where: { $0.map { $0.sequence > last } ?? false }) {
            outcomes.removeSubrange(lost...)
        }
        append(.claim(epoch: epoch, nonce: claim))
    }

    private func commit(of frame: Bytes) throws -> Commit {
        try Commit.decode(body: frame.dropFirst(Frame.size))
    }

    // MARK: Answers

    /// The messages with which an honest sequencer answers.
    mutating func answer(_ message: NodeMessage, rejecting isRejected: Bool) -> [SequencerMessage] {
        switch message {
        // Outcomes may have been lost in transit, so they are sent again after the welcome.
        case .hello(let hello): [answer(hello)] + told(from: 1, through: UInt64(outcomes.count))
        case .open(let open): [answer(open)]
        case .submit(let batch): judge(batch, rejecting: isRejected)
        case .fetch(let fetch):
            [
                .entries(
                    Entries(
                        request: fetch.request, last: last, floor: SequenceNumber(1),
                        commits: frames.filter { frame in
                            certain { try commit(of: frame) }.last >= fetch.from
                        }.prefix(2).map { $0.dropFirst(Frame.size) }))
            ]
        case .question(let question):
            [.answer(Answer(number: question.number, isLast: true, node: nil, body: .alive))]
        case .barrier(let barrier):
            [
                .confirmed(
                    Confirmed(request: barrier.request, outcome: .confirmed(last)))
            ]
        case .drop(let drop):
            {
                if lives[drop.store] == drop.life {
                    append(.dropped(drop.store, life: drop.life))
                    lives[drop.store] = nil
                }
                return [
                    .confirmed(Confirmed(request: drop.request, outcome: .confirmed(last)))
                ]
            }()
        case .progress(let progress): settle(through: progress.settled)
        case .load(let load):
            [
                .snapshotServed(
                    SnapshotServed(request: load.request, chunk: .none(of: load.place)))
            ]
        case .skip(let skip): [confirmed(skip.request)]
        case .freeze(let freeze): [confirmed(freeze.request)]
        case .upgrade(let upgrade): [confirmed(upgrade.request)]
        case .leaving(let leaving): [confirmed(leaving.request)]
        case .close, .answer, .bye, .digest, .snapshot, .migrated: []
        }
    }

    private func confirmed(_ request: UInt64) -> SequencerMessage {
        .confirmed(Confirmed(request: request, outcome: .confirmed(last)))
    }

    /// Marks the actions whose outcomes the node has as judged, even if the log lost them.
    @discardableResult
    private mutating func settle(through counter: UInt64) -> [SequencerMessage] {
        while UInt64(outcomes.count) < counter { outcomes.append(nil) }
        return []
    }

    private mutating func answer(_ hello: Hello) -> SequencerMessage {
        if let token = hello.session {
            guard token == SessionToken(log: log, incarnation: incarnation) else {
                return .bye(
                    Bye(code: .forgotten, message: "not remembered", answering: hello.request))
            }
        } else {
            append(.joined(nonce: hello.nonce, name: hello.name, rejoining: .none, isKeyed: false))
            incarnation = Incarnation(last.rawValue)
            outcomes = []
        }
        return .welcome(
            Welcome(
                request: hello.request, log: log, claim: claim, incarnation: incarnation,
                last: last,
                floor: SequenceNumber(1), agreed: hello.history.map { agreed(with: $0) } ?? .zero,
                settled: 0, lastCounter: UInt64(outcomes.count), feed: "feed",
                limits: SessionLimits(
                    windowBytes: 4_096, batchBytesMax: 2_048, payloadBytesMax: 64,
                    beatInterval: .milliseconds(100), silenceMax: .seconds(10))))
    }

    /// Each term has its own epoch. So the last common entry of a history and the log is the end of the last
    /// commit that is not of a later epoch.
    private func agreed(with mark: HistoryMark) -> SequenceNumber {
        guard mark.log == log else { return .zero }
        let shared = frames.map { frame in certain { try commit(of: frame) } }
            .last { $0.epoch <= mark.epoch }
        return min(shared?.last ?? .zero, mark.sequence)
    }

    private mutating func answer(_ open: Open) -> SequencerMessage {
        var outcome = Opened.Outcome.opened(
            life: .zero, schemaVersion: 1, last: last, snapshot: nil)
        if case .store(let store) = open.subject {
            if lives[store] == nil {
                append(.created(store, schemaVersion: 1, initial: open.initial))
                lives[store] = last
            }
            let life = lives[store] ?? .zero
            outcome = .opened(
                life: life, schemaVersion: 1, last: last,
                snapshot: .whole(
                    Snapshot(sequence: life, schemaVersion: 1, state: open.initial)))
        }
        return .opened(Opened(request: open.request, outcome: outcome))
    }

    private mutating func judge(_ batch: Batch, rejecting isRejected: Bool) -> [SequencerMessage] {
        settle(through: batch.settled)
        let next = UInt64(outcomes.count) + 1
        guard batch.firstCounter <= next else {
            return [.expected(Expected(counter: next, reason: .gap))]
        }
        if batch.firstCounter == next {
            if isRejected || batch.isVoid {
                for _ in 0..<batch.count { outcomes.append(nil) }
            } else {
                let first = last.next
                append(batch, from: incarnation)
                for offset in 0..<UInt64(batch.count) {
                    outcomes.append((first.advanced(by: offset), epoch))
                }
            }
        }
        return told(from: batch.firstCounter, through: batch.lastCounter)
    }

    /// The outcomes of these counters, in one message each.
    private func told(from first: UInt64, through last: UInt64) -> [SequencerMessage] {
        (first..<max(first, min(last, UInt64(outcomes.count)) + 1)).map { counter in
            guard let outcome = outcomes[Int(counter) - 1] else {
                return .rejection(
                    Rejection(firstCounter: counter, count: 1, code: .unknownTarget, message: ""))
            }
            return .receipts(
                Receipts(runs: [
                    Receipts.Run(
                        firstCounter: counter, count: 1, firstSequence: outcome.sequence,
                        epoch: outcome.epoch, timestamp: Timestamp(0))
                ]))
        }
    }
}
