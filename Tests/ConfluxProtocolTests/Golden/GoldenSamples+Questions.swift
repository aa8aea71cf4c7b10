import ConfluxVocabulary
import Testing
@testable import ConfluxProtocol

/// Questions, and the answers to them.
extension GoldenSample {
    static let questions: [(String, Question)] = [
        ("status", Question(number: 1, patience: .seconds(1), body: .status)),
        (
            "observe",
            Question(
                number: 2, patience: .milliseconds(500), acknowledged: 0x0102_0304_0506_0708,
                body: .observe(counter, node: alpha, after: SequenceNumber(17)))
        ),
        (
            "applied",
            Question(
                number: 3, patience: .seconds(5),
                body: .applied(SequenceNumber(17), .store(counter)))
        ),
        ("alive", Question(number: 4, patience: .seconds(1), body: .alive)),
        (
            "status with shapes",
            Question(number: 6, patience: .seconds(1), body: .shapes(prefs.state))
        ),
        ("reload", Question(number: 5, patience: .seconds(1), body: .reload)),
        ("start", Question(number: 8, patience: .seconds(1), body: .start(counter))),
        (
            "timers",
            Question(number: 9, patience: .seconds(1), body: .timers(behind: SequenceNumber(17)))
        ),
    ]

    static let shapes = utf8(#"{"rename":{"note":"string?","title":"string"}}"#)

    static let answers: [(String, Answer)] = [
        (
            "status with shapes",
            Answer(
                number: 6, isLast: true, node: nil,
                body: .status(
                    SequencerStatus(
                        log: log, epoch: Epoch(3), last: SequenceNumber(17),
                        floor: SequenceNumber(3), checkpoint: SequenceNumber(12), sessions: [],
                        stores: [],
                        shapes: [
                            ActionShapes(schemaVersion: 1, json: utf8(#"{"rename":null}"#)),
                            ActionShapes(schemaVersion: 2, json: shapes),
                        ])))
        ),
        (
            "status",
            Answer(
                number: 1, isLast: true, node: nil,
                body: .status(
                    SequencerStatus(
                        log: log, epoch: Epoch(3), last: SequenceNumber(17),
                        floor: SequenceNumber(3), checkpoint: SequenceNumber(12),
                        sessions: [
                            SessionStatus(
                                incarnation: Incarnation(11), name: alpha,
                                owner: Name("orders-api"), isLive: true,
                                applied: SequenceNumber(16), lastCounter: 9, hosted: [counter],
                                bridged: [prefs.state])
                        ],
                        stores: [
                            StoreStatus(
                                store: counter, life: SequenceNumber(4), schemaVersion: 1,
                                hosts: 2, snapshot: SequenceNumber(9)),
                            StoreStatus(
                                store: prefs, life: SequenceNumber(5), schemaVersion: 2,
                                hosts: 3, snapshot: SequenceNumber(5), isFrozen: true,
                                divergence: DivergenceStatus(
                                    lastEqual: SequenceNumber(9),
                                    firstUnequal: SequenceNumber(15), nodes: [Incarnation(11)],
                                    isMajority: true, path: "/title"),
                                stopped: [
                                    StoppedReplica(
                                        node: Incarnation(11), sequence: SequenceNumber(14))
                                ]),
                        ])))
        ),
        (
            "state",
            Answer(
                number: 2, isLast: false, node: alpha, deliveryTag: 0x1112_1314_1516_1718,
                body: .state(counter, SequenceNumber(17), utf8(#"{"count":5}"#)))
        ),
        ("applied", Answer(number: 3, isLast: true, node: alpha, body: .applied)),
        (
            "refused",
            Answer(number: 3, isLast: true, node: alpha, body: .refused(message: "Überlauf"))
        ),
        (
            "stopped",
            Answer(
                number: 3, isLast: true, node: alpha,
                body: .stopped(at: SequenceNumber(14), message: "Run a newer program."))
        ),
        (
            "concerned nobody",
            Answer(number: 3, isLast: true, node: alpha, body: .concernedNobody)
        ),
        (
            "failed",
            Answer(
                number: 2, isLast: true, node: nil,
                body: .failed(.notHosted, message: "no live node hosts counter/shared"))
        ),
        ("alive", Answer(number: 4, isLast: true, node: alpha, body: .alive)),
        ("reloaded", Answer(number: 5, isLast: true, node: nil, body: .reloaded(count: 3))),
        (
            "sequencers",
            Answer(
                number: 6, isLast: true, node: nil,
                body: .sequencers([
                    SequencerPlace(
                        address: "tcp://10.0.0.5:7400", isServing: true,
                        last: SequenceNumber(17)),
                    SequencerPlace(
                        address: "tcp://10.0.0.6:7400", isServing: false,
                        last: SequenceNumber(15)),
                ]))
        ),
        (
            "handing over",
            Answer(
                number: 7, isLast: true, node: nil,
                body: .handingOver(to: "tcp://10.0.0.6:7400"))
        ),
        (
            "start",
            Answer(
                number: 8, isLast: true, node: nil,
                body: .start(
                    counter,
                    .opened(
                        life: SequenceNumber(12), schemaVersion: 1, last: SequenceNumber(17),
                        floor: SequenceNumber(3),
                        snapshot: .whole(
                            Snapshot(
                                sequence: SequenceNumber(12), schemaVersion: 1,
                                state: EncodedState(
                                    coding: .json, bytes: utf8(#"{"count":5}"#)))))))
        ),
        (
            "start of a store with an earlier snapshot",
            Answer(
                number: 11, isLast: true, node: nil,
                body: .start(
                    counter,
                    .opened(
                        life: SequenceNumber(12), schemaVersion: 1, last: SequenceNumber(117),
                        floor: SequenceNumber(3),
                        snapshot: .saved(
                            SnapshotReference(
                                sequence: SequenceNumber(90), schemaVersion: 1,
                                digest: Digest(of: utf8("later")), byteCount: 11)))),
                earlier: EarlierStart(
                    snapshot: SnapshotReference(
                        sequence: SequenceNumber(40), schemaVersion: 1,
                        digest: Digest(of: utf8("earlier")), byteCount: 10),
                    skipped: [SequenceNumber(50)]))
        ),
        (
            "timers",
            Answer(
                number: 9, isLast: true, node: nil,
                body: .timers([
                    TimerStatus(
                        number: SequenceNumber(18), owner: Name("orders-api"), key: "hold-17",
                        targets: [.store(counter), .state(prefs.state)],
                        due: Timestamp(1_700_000_000_000_000_000), interval: .seconds(60)),
                    TimerStatus(
                        number: SequenceNumber(19), owner: nil, key: nil,
                        targets: [.store(counter)], due: Timestamp(-1), interval: nil),
                ]))
        ),
    ]
}
