import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A message of every kind, in every alternative, as `docs/golden-frames.json` shows them.
struct GoldenSample: Sendable, CustomTestStringConvertible {
    let name: String
    let epoch: Epoch
    /// The session for which a node speaks. A node has none before its first welcome.
    let session: Incarnation
    let message: AnyMessage

    var testDescription: String { name }
    var frame: [UInt8] { message.encoded(epoch: epoch, session: session) }

    init(_ name: String, epoch: UInt64 = 3, session: UInt64? = nil, _ message: AnyMessage) {
        self.name = name
        self.epoch = Epoch(epoch)
        let isNode = if case .node = message { true } else { false }
        self.session = Incarnation(session ?? (isNode ? 11 : 0))
        self.message = message
    }

    static let all: [GoldenSample] = node + sequencer + feed

    static let log = Identifier("00112233445566778899aabbccddeeff")!
    static let nonce = Identifier("0123456789abcdef0123456789abcdef")!
    static let claim = Identifier("fedcba98765432100123456789abcdef")!
    static let counter = StoreName("counter")!
    static let prefs = StoreName("document/prefs")!
    static let alpha = Name("alpha")!
    static let reset = Name("reset")!

    static func utf8(_ text: String) -> Bytes { Array(text.utf8)[...] }

    static let batch: Batch = {
        var builder = BatchBuilder()
        let counters = BatchTarget(target: .state(counter.state), schemaVersion: 1, coding: .json)
        let document = BatchTarget(
            target: .store(prefs), life: SequenceNumber(4), schemaVersion: 2, coding: .compact)
        let event = BatchTarget(target: .event(reset), schemaVersion: 1, coding: .json)
        builder.append(target: counters, payload: utf8(#"{"add":{"amount":5}}"#))
        builder.append(target: document, payload: [1, 2, 3])
        builder.append(target: counters, payload: [])
        // A length that takes two bytes.
        builder.append(target: event, payload: [UInt8](repeating: 0x20, count: 128))
        return builder.finish(firstCounter: 8, settled: 7)
    }()

    private static let atomicBatch: Batch = {
        var builder = BatchBuilder()
        let target = BatchTarget(target: .store(counter), schemaVersion: 1, coding: .json)
        builder.append(target: target, payload: utf8(#"{"increment":{}}"#))
        return builder.finish(firstCounter: 15, settled: 7, isAtomic: true)
    }()

    private static let conditionalBatch: Batch = {
        var builder = BatchBuilder()
        let plain = BatchTarget(target: .store(counter), schemaVersion: 1, coding: .json)
        let conditional = BatchTarget(
            target: .store(prefs), life: SequenceNumber(4), schemaVersion: 2, coding: .json,
            unchangedSince: StoreVersion(sequence: SequenceNumber(17), epoch: Epoch(3)))
        builder.append(target: plain, payload: utf8(#"{"increment":{}}"#))
        builder.append(target: conditional, payload: utf8(#"{"remove":{"at":"/draft"}}"#))
        return builder.finish(firstCounter: 16, settled: 7)
    }()

    static let commitFrame: Bytes = {
        var builder = CommitBuilder(
            log: log, epoch: Epoch(2), predecessor: Epoch(1), first: SequenceNumber(10))
        builder.append(.claim(epoch: Epoch(2), nonce: claim))
        builder.append(.joined(nonce: nonce, name: alpha, rejoining: .none, isKeyed: false))
        builder.append(batch, from: Incarnation(11))
        builder.append(
            .joined(nonce: nonce, name: nil, rejoining: Incarnation(5), isKeyed: true))
        builder.append(
            .created(
                counter, schemaVersion: 1,
                initial: EncodedState(coding: .json, bytes: utf8(#"{"count":0}"#))))
        builder.append(.left(Incarnation(5)))
        builder.append(.forgotten(Incarnation(6)))
        builder.append(.dropped(counter, life: SequenceNumber(7)), by: Name("ops"))
        builder.append(
            .upgraded(
                counter, life: SequenceNumber(8), schemaVersion: 2, base: SequenceNumber(9),
                digest: nil))
        builder.append(.frozen(counter, life: SequenceNumber(8), reason: .abandoned))
        builder.append(.frozen(counter, life: SequenceNumber(8), reason: .unconfirmed))
        builder.append(.frozen(counter, life: SequenceNumber(8), reason: .asked))
        builder.append(.thawed(counter, life: SequenceNumber(8)))
        builder.append(.digestPoint(counter, life: SequenceNumber(8)))
        builder.append(.skipped(SequenceNumber(9), .state(counter.state)))
        builder.append(.visited(nonce: nonce))
        return builder.finish(timestamp: Timestamp(1_700_000_000_000_000_000))
    }()

    private static let eventCommit: Bytes = {
        var builder = CommitBuilder(
            log: log, epoch: Epoch(1), predecessor: Epoch(1), first: SequenceNumber(2))
        builder.append(.handles(counter.state, events: [reset]))
        var batch = BatchBuilder()
        batch.append(
            target: BatchTarget(
                target: .event(reset, of: [counter.state, prefs.state]), schemaVersion: 1,
                coding: .json), payload: utf8("{}"))
        builder.append(
            batch.finish(firstCounter: 1, settled: 0, isAtomic: true), from: Incarnation(1))
        return builder.finish(timestamp: Timestamp(2))
    }()

    private static let forkedCommit: Bytes = {
        var builder = CommitBuilder(
            log: log, epoch: Epoch(9), predecessor: Epoch(1), first: SequenceNumber(5))
        builder.append(.claim(epoch: Epoch(9), nonce: nonce))
        builder.append(.forked(from: log))
        return builder.finish(timestamp: Timestamp(3))
    }()

    private static let smallCommit: Bytes = {
        var builder = CommitBuilder(
            log: log, epoch: Epoch(1), predecessor: .none, first: SequenceNumber(1))
        builder.append(.claim(epoch: Epoch(1), nonce: nonce))
        return builder.finish(timestamp: Timestamp(1)).dropFirst(Frame.size)
    }()

    private static let node: [GoldenSample] =
        [
            GoldenSample(
                "hello, the first", epoch: 0, session: 0,
                .node(.hello(Hello(request: 1, nonce: nonce, name: nil, role: .member)))),
            GoldenSample(
                "hello, again",
                .node(
                    .hello(
                        Hello(
                            request: 2, nonce: nonce, name: alpha, role: .member,
                            session: SessionToken(log: log, incarnation: Incarnation(11)),
                            history: HistoryMark(
                                log: log, sequence: SequenceNumber(17), epoch: Epoch(2),
                                claim: claim),
                            hosted: [
                                HostedStore(
                                    store: counter, life: SequenceNumber(4),
                                    versions: SupportedVersions(1))
                            ],
                            bridged: [StateBridge(state: prefs.state, schemaVersion: 2)])))),
            GoldenSample(
                "hello, an observer's", epoch: 0, session: 0,
                .node(.hello(Hello(request: 1, nonce: nonce, name: alpha, role: .observer)))),
            GoldenSample(
                "hello, with shapes", epoch: 0, session: 0,
                .node(
                    .hello(
                        Hello(
                            request: 1, nonce: nonce, name: alpha, role: .member,
                            bridged: [
                                StateBridge(state: counter.state, schemaVersion: 1),
                                StateBridge(
                                    state: prefs.state, schemaVersion: 2, shapes: shapes),
                            ])))),
            GoldenSample(
                "hello, with a key", epoch: 0, session: 0,
                .node(
                    .hello(
                        Hello(request: 1, nonce: nonce, name: nil, role: .member, process: claim))
                )),
            GoldenSample(
                "upgrade",
                .node(
                    .upgrade(
                        Upgrade(
                            request: 7, store: counter, life: SequenceNumber(4),
                            schemaVersion: 2, mayReplay: true)))),
            GoldenSample(
                "migrated",
                .node(
                    .migrated(
                        Migrated(
                            place: SnapshotPlace(
                                store: counter, life: SequenceNumber(4),
                                sequence: SequenceNumber(9)),
                            schemaVersion: 2,
                            outcome: .migrated(Digest(of: utf8("state"))))))),
            GoldenSample(
                "migrated, failed",
                .node(
                    .migrated(
                        Migrated(
                            place: SnapshotPlace(
                                store: counter, life: SequenceNumber(4),
                                sequence: SequenceNumber(9)),
                            schemaVersion: 2, outcome: .failed("no limit"))))),
            GoldenSample("leaving", .node(.leaving(Leaving(request: 8)))),
            GoldenSample(
                "open, a store with older versions",
                .node(
                    .open(
                        Open(
                            request: 1, subject: .store(counter),
                            versions: SupportedVersions(3, oldest: 2, policy: .whenTold),
                            events: [],
                            initial: EncodedState(
                                coding: .json, bytes: utf8(#"{"count":0}"#)))))),
            GoldenSample(
                "migrate",
                .sequencer(
                    .migrate(
                        Migrate(
                            store: counter, life: SequenceNumber(4), schemaVersion: 2,
                            snapshot: .whole(
                                Snapshot(
                                    sequence: SequenceNumber(4), schemaVersion: 1,
                                    state: EncodedState(
                                        coding: .json, bytes: utf8(#"{"count":0}"#)))))))),
            GoldenSample(
                "open, a store",
                .node(
                    .open(
                        Open(
                            request: 1, subject: .store(counter), versions: SupportedVersions(1),
                            events: [reset],
                            initial: EncodedState(
                                coding: .json, bytes: utf8(#"{"count":0}"#)))))),
            GoldenSample(
                "open, a state",
                .node(
                    .open(
                        Open(
                            request: 2, subject: .state(prefs.state),
                            versions: SupportedVersions(1), events: [],
                            initial: .none)))),
            GoldenSample(
                "open, a state with shapes",
                .node(
                    .open(
                        Open(
                            request: 2, subject: .state(prefs.state),
                            versions: SupportedVersions(2), events: [],
                            initial: .none, shapes: shapes)))),
            GoldenSample("close, a store", .node(.close(Close(subject: .store(counter))))),
            GoldenSample(
                "drop",
                .node(.drop(Drop(request: 5, store: counter, life: SequenceNumber(7))))),
            GoldenSample("close, a state", .node(.close(Close(subject: .state(prefs.state))))),
            GoldenSample("submit", .node(.submit(batch))),
            GoldenSample("submit, atomic", .node(.submit(atomicBatch))),
            GoldenSample("submit, with a condition", .node(.submit(conditionalBatch))),
            GoldenSample(
                "submit, void",
                .node(.submit(.void(firstCounter: 12, count: 3, settled: 7)))),
            GoldenSample(
                "fetch",
                .node(
                    .fetch(
                        Fetch(
                            request: 3, from: SequenceNumber(10), limitBytes: 65_536,
                            acknowledged: 0x0102_0304_0506_0708)))),
            GoldenSample(
                "progress",
                .node(.progress(Progress(applied: SequenceNumber(17), settled: 9)))),
            GoldenSample(
                "progress, with a replica that stopped",
                .node(
                    .progress(
                        Progress(
                            applied: SequenceNumber(17), settled: 9,
                            stopped: [
                                StoppedStore(
                                    store: counter, life: SequenceNumber(4),
                                    sequence: SequenceNumber(16))
                            ])))),
        ] + snapshotsOfNodes
        + questions.map { GoldenSample("question, \($0)", .node(.question($1))) }
        + answers.map { GoldenSample("answer, \($0)", .node(.answer($1))) } + [
            GoldenSample("barrier", .node(.barrier(Barrier(request: 4)))),
            GoldenSample("bye", .node(.bye(Bye(code: .leaving, message: "alpha leaves")))),
        ]

    private static let sequencer: [GoldenSample] =
        [
            GoldenSample(
                "welcome",
                .sequencer(
                    .welcome(
                        Welcome(
                            request: 2, log: log, claim: claim, incarnation: Incarnation(11),
                            last: SequenceNumber(17), floor: SequenceNumber(1),
                            agreed: SequenceNumber(16), settled: 7, lastCounter: 9,
                            feed: "tcp://*:7401",
                            limits: SessionLimits(
                                windowBytes: 8 << 20, batchBytesMax: 1 << 20,
                                payloadBytesMax: 1 << 20, beatInterval: .milliseconds(100),
                                silenceMax: .seconds(10)))))),
            GoldenSample(
                "opened, a store",
                .sequencer(
                    .opened(
                        Opened(
                            request: 1,
                            outcome: .opened(
                                life: SequenceNumber(4), schemaVersion: 1,
                                last: SequenceNumber(17),
                                snapshot: .whole(
                                    Snapshot(
                                        sequence: SequenceNumber(4), schemaVersion: 1,
                                        state: EncodedState(
                                            coding: .json, bytes: utf8(#"{"count":0}"#))))))))),
            GoldenSample(
                "opened, a store with a snapshot",
                .sequencer(
                    .opened(
                        Opened(
                            request: 1,
                            outcome: .opened(
                                life: SequenceNumber(4), schemaVersion: 2,
                                last: SequenceNumber(17), floor: SequenceNumber(10),
                                snapshot: .saved(reference),
                                skipped: [SequenceNumber(11), SequenceNumber(14)]))))),
            GoldenSample(
                "opened, a store of which entries are kept aside",
                .sequencer(
                    .opened(
                        Opened(
                            request: 1,
                            outcome: .opened(
                                life: SequenceNumber(4), schemaVersion: 2,
                                last: SequenceNumber(17), floor: SequenceNumber(10),
                                snapshot: .saved(reference),
                                aside: SnapshotReference(
                                    sequence: SequenceNumber(9), schemaVersion: 0,
                                    digest: reference.digest, byteCount: 96)))))),
            GoldenSample(
                "opened, a state",
                .sequencer(
                    .opened(
                        Opened(
                            request: 2,
                            outcome: .opened(
                                life: .zero, schemaVersion: 1, last: SequenceNumber(17),
                                snapshot: nil))))),
            GoldenSample(
                "opened, failed",
                .sequencer(
                    .opened(
                        Opened(
                            request: 1,
                            outcome: .failed(.tableFull, message: "there are 1024 stores"))))),
            GoldenSample(
                "receipts",
                .sequencer(
                    .receipts(
                        Receipts(runs: [
                            Receipts.Run(
                                firstCounter: 8, count: 4, firstSequence: SequenceNumber(12),
                                epoch: Epoch(2), timestamp: Timestamp(1_700_000_000_000_000_000))
                        ])))),
            GoldenSample(
                "rejection",
                .sequencer(
                    .rejection(
                        Rejection(
                            firstCounter: 12, count: 1, code: .unknownTarget,
                            message: "nobody hosts “county”; known: counter")))),
            GoldenSample(
                "rejection, of a condition",
                .sequencer(
                    .rejection(
                        Rejection(
                            firstCounter: 17, count: 1, code: .conflict,
                            message: "document/prefs has changed since 17, and is at 18 now",
                            version: StoreVersion(sequence: SequenceNumber(18), epoch: Epoch(3)))))),
            GoldenSample(
                "expected, a gap",
                .sequencer(.expected(Expected(counter: 12, reason: .gap)))),
            GoldenSample(
                "expected, full",
                .sequencer(.expected(Expected(counter: 12, reason: .full)))),
            GoldenSample(
                "expected, full, with a reason",
                .sequencer(
                    .expected(
                        Expected(
                            counter: 12, reason: .full, message: "the log is nearly full")))),
            GoldenSample(
                "entries",
                .sequencer(
                    .entries(
                        Entries(
                            request: 3, last: SequenceNumber(17), floor: SequenceNumber(1),
                            deliveryTag: 0x1112_1314_1516_1718, commits: [smallCommit])))),
            GoldenSample(
                "entries, damaged",
                .sequencer(
                    .entries(
                        Entries(
                            request: 3, last: SequenceNumber(17), floor: SequenceNumber(1),
                            deliveryTag: 9, commits: [],
                            damage: Damage(
                                first: SequenceNumber(10), last: SequenceNumber(12),
                                message: "can't be read"))))),
        ] + snapshotsOfSequencers
        + questions.map { GoldenSample("question asked, \($0)", .sequencer(.question($1))) }
        + answers.map { GoldenSample("answer given, \($0)", .sequencer(.answer($1))) } + [
            GoldenSample(
                "barrier confirmed",
                .sequencer(
                    .confirmed(
                        Confirmed(
                            request: 4, outcome: .confirmed(SequenceNumber(17)))))),
            GoldenSample(
                "barrier confirmed, failed",
                .sequencer(
                    .confirmed(
                        Confirmed(
                            request: 4,
                            outcome: .failed(.tableFull, message: "there are 4096 barriers"))))),
            GoldenSample(
                "farewell",
                .sequencer(.bye(Bye(code: .rejoin, message: "say hello again")))),
            GoldenSample(
                "redirect",
                .sequencer(.redirect(Redirect(request: 2, address: "tcp://10.0.0.6:7400")))),
            GoldenSample(
                "farewell, to a hello",
                .sequencer(
                    .bye(Bye(code: .forgotten, message: "join anew", answering: 2)))),
        ]

    private static let feed: [GoldenSample] = [
        GoldenSample("commit", .feed(decoded(commitFrame))),
        GoldenSample("commit, an event for stores", .feed(decoded(eventCommit))),
        GoldenSample("commit, the end of a fork", .feed(decoded(forkedCommit))),
        GoldenSample(
            "beat",
            .feed(
                .beat(Beat(log: log, last: SequenceNumber(17), floor: SequenceNumber(1))))),
    ]

    private static func decoded(_ frame: Bytes) -> FeedMessage {
        do {
            return try Frame.decodeFeedMessage(frame)
        } catch {
            preconditionFailure("what was built does not decode: \(error)")
        }
    }
}
