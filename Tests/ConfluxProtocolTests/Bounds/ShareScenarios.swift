import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// In each table that keys share, one key takes what it gets, and another one still works (rule 48).
struct ShareScenarios {
    /// Two keys, each with some connections: 1 to 19 are the greedy one's, 20 and later the other one's.
    private func peers(_ adjust: (inout SequencerSettings) -> Void = { _ in }) -> RawPeers {
        var peers = RawPeers(adjust)
        for connection in 1...60 as ClosedRange<UInt64> {
            peers.principals[connection] = Principal(
                name: Name(connection < 20 ? "greedy" : "other"), rights: .all)
        }
        return peers
    }

    private func expectBounds(_ peers: RawPeers) {
        for bound in peers.cluster.sequencer?.bounds ?? [] {
            #expect(bound.level <= bound.most, "\(bound)")
        }
    }

    // MARK: The rule

    @Test func `an owner may use as much as it leaves free, and one that uses nothing finds room`()
    {
        for most in 1...40 {
            var shares = Shares<Int>()
            for owner in 0..<50 {
                let isFull = shares.total == most
                #expect(shares.hasRoom(for: owner, of: most) == !isFull)
                while shares.hasRoom(for: owner, of: most) { shares.add(of: owner) }
                #expect(shares.total <= most)
                if owner == 0 { #expect(shares.use(of: 0) == (most + 1) / 2) }
            }
            #expect(shares.total == most)
            // What nobody owns is bounded, too.
            #expect(!shares.hasRoom(for: nil, of: most))
            for owner in 0..<50 { shares.remove(shares.use(of: owner), of: owner) }
            #expect(shares == Shares())
        }
    }

    @Test func `no amount exceeds a bound, whatever owners use it`() {
        var numbers = SplitMix64(seed: 7)
        for _ in 0..<200 {
            let most = Int.random(in: 1...1_000, using: &numbers)
            var shares = Shares<Int>()
            var held: [(owner: Int?, amount: Int)] = []
            for _ in 0..<300 {
                let owner = Int.random(in: -1...4, using: &numbers)
                let amount = Int.random(in: 1...100, using: &numbers)
                let name = owner < 0 ? nil : owner
                if shares.hasRoom(for: name, amount, of: most) {
                    shares.add(amount, of: name)
                    held.append((name, amount))
                } else if !held.isEmpty, Bool.random(using: &numbers) {
                    let gone = held.remove(at: Int.random(in: held.indices, using: &numbers))
                    shares.remove(gone.amount, of: gone.owner)
                }
                #expect(shares.total == held.reduce(0) { $0 + $1.amount })
                #expect(shares.total <= most)
            }
        }
    }

    // MARK: Questions, barriers, observers

    @Test func `a key whose questions nobody answers leaves others theirs`() throws {
        var peers = peers { $0.questionsMax = 64 }
        peers.join(1)
        peers.open("silent", request: 1, on: 1)
        for connection in 2...9 as ClosedRange<UInt64> { peers.join(connection, role: .observer) }
        let silent = try #require(StoreName("silent"))
        func observe(_ number: UInt64) -> NodeMessage {
            .question(
                Question(
                    number: number, patience: .seconds(5),
                    body: .observe(silent, node: nil, after: .zero)))
        }
        // From many connections: the share is the key's.
        for number in 1...64 as ClosedRange<UInt64> {
            peers.say(observe(number), on: 2 + number % 8)
        }
        let refused = (2...9).reduce(0) { $0 + peers.heard(on: $1).failures.count }
        #expect(refused == 32)
        expectBounds(peers)
        peers.join(20, role: .observer)
        peers.say(observe(1), on: 20)
        #expect(peers.heard(on: 20).failures.isEmpty)
        // What ends makes room, however it ends: by an answer, in time, or with the connection.
        peers.cluster.handle(.disconnected(ConnectionID(rawValue: 1_002)))
        peers.say(observe(100), on: 3)
        #expect(peers.heard(on: 3).failures.isEmpty)
        peers.cluster.pass(.seconds(6))
        #expect(peers.cluster.sequencer?.questions.count == 0)
        for number in 1...33 as ClosedRange<UInt64> { peers.say(observe(number), on: 3) }
        #expect(peers.heard(on: 3).failures.filter { $0 == .tableFull }.count == 1)
    }

    @Test func `a key whose barriers wait leaves others theirs`() {
        var peers = peers { $0.barriersMax = 8 }
        peers.cluster.isConfirmSlow = true
        for connection in [1, 2, 20] as [UInt64] { peers.join(connection) }
        func barrier(_ request: UInt64, on connection: UInt64) -> Bool {
            peers.say(.barrier(Barrier(request: request)), on: connection)
            return peers.heard(on: connection).contains { message in
                guard case .confirmed(let confirmed) = message,
                    case .failed(.tableFull, _) = confirmed.outcome
                else { return false }
                return true
            }
        }
        let refused = (1...8).count { barrier($0, on: 1 + $0 % 2) }
        #expect(refused == 4)
        #expect(!barrier(1, on: 20))
        // A barrier that is asked again takes no second place.
        #expect(!barrier(4, on: 1))
        while peers.cluster.waitingConfirms > 0 {
            peers.cluster.answerConfirm()
            peers.cluster.run()
        }
        #expect(!barrier(100, on: 1))
        expectBounds(peers)
    }

    @Test func `a key's observers leave places for those of others`() {
        var peers = peers { $0.observersMax = 8 }
        for connection in 1...8 as ClosedRange<UInt64> { peers.join(connection, role: .observer) }
        #expect((1...8).count { peers.heard(on: $0).byes == [.tableFull] } == 4)
        for connection in 20...21 as ClosedRange<UInt64> {
            peers.join(connection, role: .observer)
            #expect(peers.heard(on: connection).welcomes == 1)
        }
        // An observer that becomes a member, or leaves, makes room.
        peers.join(1)
        peers.say(.bye(Bye(code: .leaving, message: "")), on: 2)
        peers.cluster.handle(.disconnected(ConnectionID(rawValue: 1_003)))
        for connection in 5...6 as ClosedRange<UInt64> {
            peers.join(connection, role: .observer)
            #expect(peers.heard(on: connection).welcomes == 1)
        }
        expectBounds(peers)
    }

    // MARK: Stores, first states, states

    @Test
    func `a key that makes stores leaves others theirs, even after it has left and a restart`()
        throws
    {
        var peers = peers { $0.storesMax = 16 }
        peers.join(1)
        for index in 0..<16 { peers.open("counter/m\(index)", request: UInt64(index), on: 1) }
        #expect(peers.heard(on: 1).opens.count { $0 == .tableFull } == 8)
        peers.say(.bye(Bye(code: .leaving, message: "")), on: 1)
        peers.join(20)
        peers.open("counter/shared", request: 1, on: 20)
        #expect(peers.heard(on: 20).opens == [nil])
        expectBounds(peers)
        // From the log, and then from a checkpoint.
        for isCheckpointed in [false, true] {
            if isCheckpointed { try peers.cluster.saveCheckpoint() }
            peers.cluster.killSequencer()
            peers.cluster.claimAndRead()
            peers.join(2, as: isCheckpointed ? 102 : 2)
            peers.open("counter/more", request: 1, on: 2)
            #expect(peers.heard(on: 2).opens == [.tableFull])
            peers.join(21, as: isCheckpointed ? 121 : 21)
            peers.open("counter/y\(isCheckpointed)", request: 1, on: 21)
            #expect(peers.heard(on: 21).opens == [nil])
        }
        // The key drops one of its stores, and may make another one.
        let name = try #require(StoreName("counter/m0"))
        let life = try #require(peers.cluster.sequencer?.directory.store(name)?.life)
        for request in 1...4 as ClosedRange<UInt64> {
            let dropped = try #require(StoreName("counter/m\(request)"))
            let life = try #require(peers.cluster.sequencer?.directory.store(dropped)?.life)
            peers.say(.drop(Drop(request: request, store: dropped, life: life)), on: 2)
        }
        peers.say(.drop(Drop(request: 9, store: name, life: life)), on: 2)
        _ = peers.heard(on: 2)
        peers.open("counter/again", request: 2, on: 2)
        #expect(peers.heard(on: 2).opens == [nil])
    }

    @Test func `a key's first states leave bytes for those of others`() {
        var peers = peers { $0.initialStatesBytesMax = 1_000 }
        peers.join(1)
        for index in 0..<10 {
            peers.open("list/m\(index)", request: UInt64(index), bytes: 100, on: 1)
        }
        #expect(peers.heard(on: 1).opens.count { $0 == .tableFull } == 5)
        peers.join(20)
        peers.open("list/big", request: 1, bytes: 400, on: 20)
        #expect(peers.heard(on: 20).opens == [nil])
        expectBounds(peers)
    }

    @Test func `a key's states leave room for those of others, bridged or in the log`() throws {
        var peers = peers { $0.statesMax = 8 }
        for connection in 1...2 as ClosedRange<UInt64> { peers.join(connection) }
        func bridge(_ state: String, _ request: UInt64, on connection: UInt64) throws {
            peers.say(
                .open(
                    Open(
                        request: request, subject: .state(try #require(Name(state))),
                        versions: SupportedVersions(1), events: [], initial: .none)), on: connection
            )
        }
        for index in 0..<4 { peers.open("s\(index)/x", request: UInt64(index), on: 1) }
        for index in 0..<4 { try bridge("b\(index)", UInt64(index), on: 2) }
        #expect(peers.heard(on: 1).opens == [nil, nil, nil, nil])
        #expect(peers.heard(on: 2).opens == Array(repeating: .tableFull, count: 4))
        peers.join(20)
        peers.open("mine/x", request: 1, on: 20)
        try bridge("bridged", 2, on: 20)
        #expect(peers.heard(on: 20).opens == [nil, nil])
        // States in the log stay, with the key because of which they are there.
        try peers.cluster.saveCheckpoint()
        peers.cluster.killSequencer()
        peers.cluster.claimAndRead()
        peers.join(3)
        try bridge("again", 1, on: 3)
        #expect(peers.heard(on: 3).opens == [.tableFull])
        peers.join(21)
        try bridge("bridged", 1, on: 21)
        #expect(peers.heard(on: 21).opens == [nil])
        expectBounds(peers)
    }

    @Test func `a bridged state counts for the node that has bridged it longest`() throws {
        var states = StateTable()
        let name = try #require(Name("s"))
        let keys = try ["a", "b"].map { Sharer.key(try #require(Name($0))) }
        func bridge(_ number: UInt64, _ sharer: Sharer, shapes: Int? = nil) {
            states.bridge(
                StateBridge(
                    state: name, schemaVersion: UInt32(number),
                    shapes: shapes.map { [UInt8](repeating: 0x20, count: $0)[...] }),
                by: Incarnation(number), of: sharer)
        }
        bridge(1, keys[0], shapes: 10)
        bridge(2, keys[1], shapes: 20)
        #expect(keys.map { states.shares.use(of: $0) } == [1, 0])
        #expect(keys.map { states.shapesBytes.use(of: $0) } == [10, 20])
        states.endBridge(name, by: Incarnation(1))
        #expect(keys.map { states.shares.use(of: $0) } == [0, 1])
        #expect(keys.map { states.shapesBytes.use(of: $0) } == [0, 20])
        _ = states.see(name, by: Name("a"))
        states.endBridge(name, by: Incarnation(2))
        #expect(keys.map { states.shares.use(of: $0) } == [1, 0])
        #expect(states.shapesBytes == Shares() && states.count == 1)
    }

    @Test func `a key's shapes leave bytes for those of others`() throws {
        var states = StateTable()
        let keys = try ["a", "b"].map { Sharer.key(try #require(Name($0))) }
        func bridge(_ index: Int, _ sharer: Sharer) throws -> Bool {
            let name = try #require(Name("s\(index)"))
            let shapes = [UInt8](repeating: 0x20, count: WireLimits.shapesBytesMax)
            states.bridge(
                StateBridge(state: name, schemaVersion: 1, shapes: shapes[...]),
                by: Incarnation(UInt64(index)), of: sharer)
            return !states.shapes(of: name).isEmpty
        }
        let most = StateTable.shapesBytesMax / WireLimits.shapesBytesMax
        #expect(try (1...most).count { try bridge($0, keys[0]) } == most / 2)
        #expect(try bridge(most + 1, keys[1]))
        // Shapes that find no room take nothing away: those of the same version that were there stay.
        #expect(try bridge(1, keys[1]))
    }

    // MARK: What waits

    @Test func `a key's hellos that wait for the log leave places for those of others`() {
        var confirmations = Confirmations()
        func hello(_ number: UInt64, _ key: String) -> Hello {
            let hello = Hello(
                request: 1, nonce: Identifier(high: 1, low: number), name: nil, role: .observer)
            return hello.owned(by: Principal(name: Name(key), rights: .all))
        }
        for number in 1...2_000 as ClosedRange<UInt64> {
            confirmations.add(hello(number, "greedy"), from: ConnectionID(rawValue: number))
        }
        #expect(confirmations.hellos.reduce(0) { count, _ in count + 1 } == 512)
        confirmations.add(hello(3_000, "other"), from: ConnectionID(rawValue: 3_000))
        #expect(confirmations.hellos.contains { $0.key.rawValue == 3_000 })
        // A connection that says hello again takes no second place, and one that ends makes room.
        confirmations.add(hello(5_000, "greedy"), from: ConnectionID(rawValue: 1))
        confirmations.forgetHello(from: ConnectionID(rawValue: 2))
        confirmations.add(hello(4_000, "greedy"), from: ConnectionID(rawValue: 4_000))
        confirmations.add(hello(4_001, "greedy"), from: ConnectionID(rawValue: 4_001))
        let waiting = Set(confirmations.hellos.map(\.key.rawValue))
        #expect(waiting.contains(1) && waiting.contains(4_000) && !waiting.contains(4_001))
    }

    @Test func `a key's long hellos leave names for those of others`() throws {
        var peers = peers()
        let most = WireLimits.standard.elementsPerListMax
        let states = try (0..<most).map {
            StateBridge(state: try #require(Name("s\($0)")), schemaVersion: 1)
        }
        func hello(_ connection: UInt64) -> NodeMessage {
            .hello(
                Hello(
                    request: 100, nonce: Identifier(high: 77, low: connection), name: nil,
                    role: .member, bridged: states))
        }
        peers.cluster.isDiskSlow = true
        for connection in 1...16 as ClosedRange<UInt64> {
            peers.say(hello(connection), on: connection)
        }
        #expect(
            peers.cluster.sequencer?.joining.count == SequencerMachine.waitingNamesMax / most / 2)
        peers.say(hello(20), on: 20)
        peers.cluster.finishAppends()
        #expect(peers.heard(on: 20).welcomes == 1)
        expectBounds(peers)
    }

    @Test func `a key that waits for one store or word leaves places for others`() {
        var openers = Openers()
        var askers = Askers()
        func wait(_ number: UInt64, _ name: String) -> Bool {
            let sharer = Name(name).map { Sharer.key($0) } ?? .session(.none)
            let isOpener = openers.hasRoom(for: sharer)
            if isOpener {
                openers.add(
                    Opener(
                        incarnation: Incarnation(number), request: 1,
                        versions: SupportedVersions(1), sharer: sharer))
            }
            askers.add(
                Asker(connection: ConnectionID(rawValue: number), request: 1), of: sharer)
            #expect(askers.all.count == openers.all.count)
            return isOpener
        }
        #expect((1...1_024).count { wait($0, "greedy") } == 512)
        #expect(wait(2_000, "other"))
        openers.remove(Incarnation(1))
        #expect(openers.hasRoom(for: .key(Name("greedy")!)))
    }

    @Test func `a key that skips entries leaves room for others`() throws {
        var skips = SkipTable()
        let target = Target.store(try #require(StoreName("list")))
        func skip(_ number: UInt64, _ name: String) -> Bool {
            guard skips.hasRoom(for: Name(name)) else { return false }
            let entry = SkippedEntry(sequence: SequenceNumber(number), target: target)
            let asker = Asker(connection: ConnectionID(rawValue: 1), request: number)
            _ = skips.wait(
                asker, of: .connection(asker.connection), for: entry, by: Name(name))
            if number.isMultiple(of: 2) { _ = skips.land(entry) }
            return true
        }
        #expect((1...1_024).count { skip($0, "greedy") } == 512)
        #expect(skip(2_000, "other"))
        #expect(skips.count == 513)
        // Those that the log discards make room again.
        skips.keep { $0.sequence > SequenceNumber(100) }
        #expect(skips.count == 463)
        #expect((3_000...3_100).count { skip($0, "greedy") } == 50)
    }

    // MARK: Reads

    @Test func `a key with many connections that read waits as long for its turn as another one`() {
        var reads = ReadQueue()
        func add(_ connection: UInt64, _ key: String) {
            for request in 1...8 as ClosedRange<UInt64> {
                let waits = reads.add(
                    ReadJob(
                        connection: ConnectionID(rawValue: connection), request: request,
                        subject: .commits(from: SequenceNumber(1)), limitBytes: 1),
                    of: Name(key).map { .key($0) }
                        ?? .connection(ConnectionID(rawValue: connection)))
                #expect(waits)
            }
        }
        for connection in 1...500 as ClosedRange<UInt64> { add(connection, "greedy") }
        add(1_000, "other")
        var order: [UInt64] = []
        while let job = reads.take() {
            order.append(job.connection.rawValue)
            reads.end()
        }
        #expect(order.count == 501 * 8)
        #expect(order.prefix(16).filter { $0 == 1_000 }.count == 8)
        // The key's own connections take turns.
        #expect(Set(order.prefix(508)).count == 501)
        #expect(reads.count == 0)
    }
}
