import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// What a sequencer with keys allows to each of them.
struct RightsScenarios {
    /// A sequencer with two stores, `list` and `cart/1`, whose host is connection 9.
    private func peers() -> RawPeers {
        var peers = RawPeers()
        peers.join(9)
        peers.open("list", request: 1, on: 9)
        peers.open("cart/1", request: 2, on: 9)
        return peers
    }

    private func rights(_ patterns: [Rights.Permission: [String]]) throws -> Rights {
        Rights(
            patterns: try patterns.mapValues { try $0.map { try #require(StorePattern($0)) } })
    }

    private func principal(
        _ name: String, _ patterns: [Rights.Permission: [String]]
    ) throws -> Principal {
        Principal(name: Name(name), rights: try rights(patterns))
    }

    private func batch(
        from counter: UInt64, to targets: [String], isAtomic: Bool = false
    ) throws -> NodeMessage {
        var builder = BatchBuilder()
        for target in targets {
            builder.append(
                target: BatchTarget(
                    target: try #require(Target(target)), schemaVersion: 1, coding: .json),
                payload: Array("7".utf8))
        }
        return .submit(builder.finish(firstCounter: counter, settled: 0, isAtomic: isAtomic))
    }

    /// The counters that a connection was told to be committed, and those that were not allowed.
    private func outcomes(_ heard: [SequencerMessage]) -> (done: [UInt64], denied: [UInt64]) {
        var outcomes: (done: [UInt64], denied: [UInt64]) = ([], [])
        for message in heard {
            switch message {
            case .receipts(let receipts):
                for run in receipts.runs {
                    outcomes.done += run.firstCounter..<run.firstCounter + UInt64(run.count)
                }
            case .rejection(let rejection) where rejection.code == .notAllowed:
                let first = rejection.firstCounter
                outcomes.denied += first..<first + UInt64(rejection.count)
            default: break
            }
        }
        return (outcomes.done.sorted(), outcomes.denied.sorted())
    }

    @Test func `the allowed actions of a batch are applied, and the others are rejected`() throws {
        var peers = peers()
        peers.principals[1] = try principal("api", [.dispatch: ["list/*"]])
        peers.join(1)
        _ = peers.heard(on: 1)
        peers.say(try batch(from: 1, to: ["list/*", "cart/1", "list/shared", "cart/*"]), on: 1)
        var told = outcomes(peers.heard(on: 1))
        #expect(told.done == [1, 3] && told.denied == [2, 4])
        // Atomic actions are committed all together or not at all.
        peers.say(try batch(from: 5, to: ["list/*", "cart/1"], isAtomic: true), on: 1)
        told = outcomes(peers.heard(on: 1))
        #expect(told.done.isEmpty && told.denied == [5, 6])
        // The repeated batch gets no receipts, either.
        peers.say(try batch(from: 5, to: ["list/*", "cart/1"], isAtomic: true), on: 1)
        #expect(outcomes(peers.heard(on: 1)).done.isEmpty)
    }

    @Test func `every message needs its permission, and the answer says which`() throws {
        var peers = peers()
        peers.principals[1] = try principal("api", [.dispatch: ["*/*"]])
        peers.join(1)
        let list = try #require(StoreName("list"))
        let life = try #require(peers.cluster.sequencer?.directory.life(of: list)?.record.life)
        let last = peers.cluster.disk.last
        let place = SnapshotPlace(store: list, life: life, sequence: life)
        let patience = Duration.seconds(1)
        let observe = Question(
            number: 4, patience: patience, body: .observe(list, node: nil, after: .zero))
        let messages: [NodeMessage] = [
            .open(
                Open(
                    request: 1, subject: .store(list), versions: SupportedVersions(1), events: [],
                    initial: EncodedState(coding: .json, bytes: [0x30]))),
            .open(
                Open(
                    request: 1, subject: .state(list.state), versions: SupportedVersions(1),
                    events: [],
                    initial: EncodedState(coding: .json, bytes: []))),
            .drop(Drop(request: 2, store: list, life: life)),
            .freeze(Freeze(request: 3, store: list, life: life, isFrozen: true)),
            .skip(Skip(request: 3, sequence: last, target: .store(list))),
            .question(observe),
            .question(Question(number: 7, patience: patience, body: .reload)),
            .load(Load(request: 5, place: place, offset: 0, limitBytes: 10)),
        ]
        for message in messages {
            _ = peers.heard(on: 1)
            peers.say(message, on: 1)
            let heard = peers.heard(on: 1)
            let texts = heard.compactMap { answer -> String? in
                switch answer {
                case .opened(let opened):
                    if case .failed(.notAllowed, let text) = opened.outcome { text } else { nil }
                case .confirmed(let confirmed):
                    if case .failed(.notAllowed, let text) = confirmed.outcome { text } else { nil }
                case .answer(let answer):
                    if case .failed(.notAllowed, let text) = answer.body { text } else { nil }
                case .bye(let bye): bye.code == .notAllowed ? bye.message : nil
                default: nil
                }
            }
            #expect(heard.count == 1 && texts.count == 1, "\(message): \(heard)")
            #expect(texts.first?.contains("the key api may not") == true, "\(texts)")
        }
        #expect(peers.cluster.disk.last == last)
        // A node that dispatched an action may ask for its outcome.
        let applied = Question(
            number: 6, patience: patience, body: .applied(last, .store(list)))
        #expect(try principal("api", [.dispatch: ["*/*"]]).denial(of: .question(applied)) == nil)
        #expect(try principal("api", [.host: ["cart/*"]]).denial(of: .question(applied)) != nil)
    }

    @Test(arguments: Rights.Permission.allCases)
    func `the shapes of actions are for those who may observe or dispatch them`(
        permission: Rights.Permission
    ) throws {
        var peers = peers()
        let json = Bytes(#"{"raise":{"salary":"integer"}}"#.utf8)
        for (request, state) in [(3, "list"), (4, "cart")] as [(UInt64, String)] {
            let name = try #require(Name(state))
            peers.say(
                .open(
                    Open(
                        request: request, subject: .state(name), versions: SupportedVersions(1),
                        events: [],
                        initial: EncodedState(coding: .json, bytes: []), shapes: json)), on: 9)
        }
        peers.principals[1] = try principal("api", [permission: ["cart/7"]])
        peers.join(1, role: .observer)
        _ = peers.heard(on: 1)
        func shapes(of state: String) throws -> [Bytes] {
            let question = Question(
                number: 8, patience: .seconds(1), body: .shapes(try #require(Name(state))))
            peers.say(.question(question), on: 1)
            return peers.heard(on: 1).flatMap { message -> [Bytes] in
                guard case .answer(let answer) = message, case .status(let status) = answer.body
                else {
                    Issue.record("no status: \(message)")
                    return []
                }
                return status.shapes.map(\.json)
            }
        }
        #expect(try shapes(of: "cart") == (permission == .administer ? [] : [json]))
        #expect(try shapes(of: "list") == [])
    }

    @Test func `a hello without the rights to what it hosts, or to anything, is refused`() throws {
        var peers = peers()
        let list = try #require(StoreName("list"))
        func hello(
            _ connection: UInt64, hosts: Bool = false, bridges: Bool = false,
            role: Hello.Role = .member
        ) -> [ByeCode] {
            peers.say(
                .hello(
                    Hello(
                        request: 1, nonce: Identifier(high: 9, low: connection), name: nil,
                        role: role,
                        hosted: hosts
                            ? [
                                HostedStore(
                                    store: list, life: SequenceNumber(3),
                                    versions: SupportedVersions(1))
                            ]
                            : [],
                        bridged: bridges
                            ? [StateBridge(state: list.state, schemaVersion: 1)] : [])),
                on: connection)
            return peers.heard(on: connection).compactMap {
                if case .bye(let bye) = $0 { bye.code } else { nil }
            }
        }
        for connection in UInt64(1)...4 {
            peers.principals[connection] = try principal("a", [.host: ["cart/*", "list/1"]])
        }
        #expect(hello(1).isEmpty)
        #expect(hello(2, hosts: true) == [.notAllowed])
        #expect(hello(3, bridges: true) == [.notAllowed])
        for connection in UInt64(5)...6 {
            peers.principals[connection] = try principal("b", [.observe: ["*/*"]])
        }
        #expect(hello(5) == [.notAllowed])
        #expect(hello(6, role: .observer).isEmpty)
    }

    @Test func `joins, creations and administration are in the log, even after a checkpoint`()
        throws
    {
        var peers = peers()
        peers.principals[1] = Principal(name: Name("ops"), rights: .all)
        peers.join(1)
        peers.open("cart/2", request: 1, on: 1)
        let cart = try #require(StoreName("cart/2"))
        let life = try #require(peers.cluster.sequencer?.directory.life(of: cart)?.record.life)
        peers.say(
            .freeze(Freeze(request: 2, store: cart, life: life, isFrozen: true)), on: 1)
        peers.say(.drop(Drop(request: 3, store: cart, life: life)), on: 1)
        let session = try #require(
            peers.cluster.sequencer?.sessions.all.first { $0.owner == Name("ops") })
        var logState = LogState(log: peers.cluster.disk.id)
        var events: [LogEventKind] = []
        for (_, _, body) in peers.cluster.disk.bodies {
            let commit = try Commit.decode(body: body)
            try logState.apply(commit, byteCount: body.count)
            for case .event(let event, Name("ops")) in commit.blocks { events.append(event.kind) }
        }
        #expect(events == [.joined, .created, .frozen, .dropped])
        let restored = try LogState(checkpoint: logState.encoded()[...])
        #expect(restored.sessions[session.incarnation]?.owner == Name("ops"))
        #expect(restored.encoded() == logState.encoded())
    }

    @Test func `a key dispatches at its rate, and a large batch gets its turn`() throws {
        var peers = peers()
        var rights = try rights([.dispatch: ["*/*"]])
        rights.actionsPerSecondMax = 10
        rights.payloadBytesMax = 3
        peers.principals[1] = Principal(name: Name("slow"), rights: rights)
        peers.join(1)
        _ = peers.heard(on: 1)
        peers.say(try batch(from: 1, to: Array(repeating: "list", count: 30)), on: 1)
        #expect(outcomes(peers.heard(on: 1)).done.count == 30)
        // 20 actions above what a second allows: for two seconds, none is accepted, and none is lost.
        for _ in 0..<19 {
            peers.cluster.pass(.milliseconds(100))
            peers.say(try batch(from: 31, to: ["list/*"]), on: 1)
        }
        var heard = peers.heard(on: 1)
        #expect(outcomes(heard).done.isEmpty)
        #expect(
            heard.contains {
                if case .expected(let expected) = $0 { expected.reason == .full } else { false }
            })
        peers.cluster.pass(.milliseconds(200))
        peers.say(try batch(from: 31, to: ["list/*"]), on: 1)
        #expect(outcomes(peers.heard(on: 1)).done == [31])
        peers.cluster.pass(.seconds(1))
        if let large = peers.batch(32, bytes: 4) { peers.say(large, on: 1) }
        heard = peers.heard(on: 1)
        #expect(
            heard.contains {
                if case .rejection(let rejection) = $0 {
                    rejection.code == .payloadTooLarge
                } else {
                    false
                }
            })
        // No other node is slowed down.
        peers.join(2)
        peers.say(try batch(from: 1, to: Array(repeating: "list", count: 100)), on: 2)
        #expect(outcomes(peers.heard(on: 2)).done.count == 100)
    }

    @Test func `a key that keeps sending rejected messages is barred, for longer each time`() throws
    {
        var peers = peers()
        var rights = try rights([.dispatch: ["*/*"], .observe: ["*/*"]])
        rights.actionsPerSecondMax = 1
        let slow = try #require(Name("slow"))
        for connection in 1...2 as ClosedRange<UInt64> {
            peers.principals[connection] = Principal(name: slow, rights: rights)
            peers.join(connection)
        }
        peers.say(try batch(from: 1, to: Array(repeating: "list", count: 10_000)), on: 1)
        let aboveRate = try batch(from: 10_001, to: ["list/*"])
        let outOfOrder = try batch(from: 9, to: ["list/*"])
        // Within the grace period, such messages don't count: nodes have yet to learn of the new term.
        for _ in 0..<50_000 { peers.tell(outOfOrder, on: 1) }
        peers.cluster.pass(peers.cluster.settings.wasteGrace)
        // The connections of one key count together.
        for _ in 0..<900 { peers.tell(aboveRate, on: 1) }
        for _ in 0..<1_500 { peers.tell(outOfOrder, on: 2) }
        #expect(peers.cluster.bars.isEmpty)
        for _ in 0..<200 { peers.tell(outOfOrder, on: 2) }
        #expect(peers.cluster.bars.map(\.key) == [slow])
        #expect(peers.cluster.notes.contains(.barred(slow, for: .seconds(1))))
        // Messages that were already in transit don't count.
        for _ in 0..<5_000 { peers.tell(aboveRate, on: 1) }
        // The session of the batches has ended by then.
        func flood() {
            for _ in 0..<16 * 125 { peers.tell(aboveRate, on: 1) }
        }
        for _ in 0..<6 {
            peers.cluster.pass(peers.cluster.bars.last?.pause ?? .zero)
            flood()
        }
        #expect(
            peers.cluster.bars.map(\.pause) == [1, 4, 16, 64, 256, 256, 256].map { .seconds($0) })
        // A key that wasted nothing for long enough starts with the shortest pause again.
        peers.cluster.pass(.seconds(9 * 256))
        flood()
        #expect(peers.cluster.bars.last?.pause == .seconds(256))
        for _ in 0..<7 { flood() }
        #expect(peers.cluster.bars.last?.pause == .seconds(1))
    }

    @Test func `a key whose requests are surplus is barred, and nobody without a key`() throws {
        var peers = peers()
        peers.principals[1] = try principal("reader", [.observe: ["*/*"]])
        for connection in [1, 2] as [UInt64] {
            peers.join(connection, role: .observer)
            for number in 1...1_100 as ClosedRange<UInt64> {
                let fetch = Fetch(request: number, from: SequenceNumber(1), limitBytes: 1)
                peers.cluster.handle(
                    .surplus(
                        .fetch(fetch), from: ConnectionID(rawValue: 1_000 + connection),
                        as: peers.principals[connection] ?? .anybody))
            }
        }
        #expect(peers.cluster.bars.map(\.key) == [Name("reader")])
    }
}
