import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// What a serving socket grants its peers.
@Suite struct ConnectionTests {
    private static let limits = ConnectionTable.Limits(
        type: .publisher, connectionsMax: 3, handshakesMax: 4, messageBytesMax: 1 << 20,
        heldBytesMax: 200_000, handshakeMax: .seconds(10), silenceMax: nil)

    private func id(_ number: UInt32) -> RoutingID { RoutingID(number: number) }

    /// Adds a peer whose handshake is complete.
    private func add(_ number: UInt32, to table: inout ConnectionTable, at now: Duration = .zero)
        throws
    {
        var decoder = ZMTPDecoder(
            table.limits.type, messageBytesMax: table.limits.messageBytesMax)
        var events: [ZMTPDecoder.Event] = []
        let metadata =
            table.limits.type == .router ? CurveHandshake.dealer : ZMTP.metadata(.subscriber)
        try (ZMTP.greeting(.null) + ZMTP.command("READY", metadata))[...].withRawBytes {
            try decoder.decode($0, into: &events)
        }
        #expect(decoder.isReady)
        table.add(id(number), decoder, at: now)
    }

    /// Adds a peer that has proved a key, and admits it.
    ///
    /// - Returns: Whether there was room for it.
    private func admit(
        _ number: UInt32, _ key: CurveKeyPair, to table: inout ConnectionTable,
        of server: CurveKeyPair, most: Int
    ) throws -> Bool {
        var decoder = ZMTPDecoder(
            .router, messageBytesMax: table.limits.messageBytesMax, curve: CurveSession(server))
        var events: [ZMTPDecoder.Event] = []
        var peer = CurveHandshake(server: server.publicKey, key: key)
        try peer.begin[...].withRawBytes { try decoder.decode($0, into: &events) }
        guard case .answer(let welcome) = events.last else { return false }
        try peer.initiate(welcome)[...].withRawBytes {
            try decoder.decode($0, into: &events)
        }
        #expect(events.last == .identified(key.publicKey))
        table.add(id(number), decoder, at: .zero)
        return table.admit(id(number), key.publicKey, most: most) != nil
    }

    private func establish(_ number: UInt32, in table: inout ConnectionTable) -> Bool {
        table.establish(id(number))
    }

    private func read(
        _ table: inout ConnectionTable, _ bytes: [UInt8], from number: UInt32,
        at now: Duration = .zero
    ) throws -> RoutingID? {
        var events: [ZMTPDecoder.Event] = []
        try bytes[...].withRawBytes { bytes throws(ZMTPFault) in
            try table.read(bytes, from: id(number), at: now, into: &events)
        }
        return table.excess
    }

    @Test func `a bounded number of peers is connected, and there is room when one leaves`() throws
    {
        var table = ConnectionTable(limits: Self.limits)
        for number in 1...4 as ClosedRange<UInt32> { try add(number, to: &table) }
        for number in 1...3 as ClosedRange<UInt32> { #expect(establish(number, in: &table)) }
        #expect(!establish(4, in: &table))
        table.remove(id(1))
        #expect(establish(4, in: &table))
        #expect(table.establishedCount == 3 && table.handshakeCount == 0)
        // A peer that unsubscribes gives up its place. It must subscribe again as fast as a new one.
        table.reopen(id(2), at: .seconds(20))
        #expect(table.establishedCount == 2 && table.handshakeCount == 1)
        #expect(table.overdue(at: .seconds(30)) == [])
        #expect(table.overdue(at: .seconds(31)) == [id(2)])
    }

    @Test func `the oldest connection that is not established is closed, and no other`() throws {
        var table = ConnectionTable(limits: Self.limits)
        for number in 1...3 as ClosedRange<UInt32> {
            try add(number, to: &table)
            #expect(establish(number, in: &table))
        }
        var ended: [RoutingID] = []
        for number in 4...1_000 as ClosedRange<UInt32> {
            try add(number, to: &table)
            while let surplus = table.surplus {
                ended.append(surplus)
                table.remove(surplus)
            }
            #expect(table.handshakeCount <= 4)
        }
        #expect(ended == (4...996).map { id($0) })
        #expect((1...3).allSatisfy { table.contains(id($0)) })
        // Connections that have ended don't return.
        #expect(establish(4, in: &table) && table.establishedCount == 3)
    }

    @Test func `one key has a bounded number of connections, and others have theirs`() throws {
        let (server, first, second) = (
            CurveKeyPair.random(), CurveKeyPair.random(), CurveKeyPair.random()
        )
        var limits = Self.limits
        limits.type = .router
        limits.key = server
        limits.connectionsMax = 4
        var table = ConnectionTable(limits: limits)
        func admit(_ number: UInt32, _ key: CurveKeyPair) throws -> Bool {
            try self.admit(number, key, to: &table, of: server, most: 2)
        }
        #expect(try admit(1, first) && admit(2, first))
        #expect(try !admit(3, first))
        #expect(try admit(4, second))
        table.remove(id(1))
        #expect(try admit(6, first))
        #expect(try admit(7, second))
        #expect(table.establishedCount == 4)
        // There is no room for a third key, however few connections it has.
        #expect(try !admit(8, server))
    }

    @Test func `the longest unfinished frame is dropped when too much is held`() throws {
        var table = ConnectionTable(limits: Self.limits)
        let part: [UInt8] = [2, 0, 0, 0, 0, 0, 0xF, 0, 0] + [UInt8](repeating: 0, count: 60_000)
        for number in 1...3 as ClosedRange<UInt32> {
            try add(number, to: &table)
        }
        #expect(try read(&table, part, from: 2) == nil)
        #expect(try read(&table, part, from: 1) == nil)
        var ended: RoutingID?
        while ended == nil {
            ended = try read(&table, Array(part[9..<10_000]), from: 1)
        }
        #expect(ended == id(2))
        #expect(table.heldBytes > 200_000)
        table.remove(id(2))
        table.remove(id(1))
        #expect(table.excess == nil)
        table.remove(id(3))
        #expect(table.heldBytes == 0)
    }

    @Test func `a key whose frames are unfinished loses one of its own, and no other key does`()
        throws
    {
        let (server, many, one) = (
            CurveKeyPair.random(), CurveKeyPair.random(), CurveKeyPair.random()
        )
        var limits = Self.limits
        (limits.type, limits.key, limits.connectionsMax) = (.router, server, 8)
        var table = ConnectionTable(limits: limits)
        for number in 1...5 as ClosedRange<UInt32> {
            #expect(
                try admit(number, number == 1 ? one : many, to: &table, of: server, most: 8))
        }
        let part = ZMTP.header(bodyBytes: 100_000) + [UInt8](repeating: 7, count: 50_000)
        // The message that has been under way for longest is the only one of its key.
        for number in 1...3 as ClosedRange<UInt32> {
            #expect(try read(&table, part, from: number) == nil)
        }
        for (number, oldest) in [(4, 2), (5, 3)] as [(UInt32, UInt32)] {
            var ended = try read(&table, part, from: number)
            while ended == nil {
                ended = try read(&table, Array(part[9..<5_000]), from: number)
            }
            #expect(ended == id(oldest))
            table.remove(id(oldest))
            #expect(table.excess == nil)
        }
        #expect(try read(&table, Array(part[9..<10_000]), from: 1) != id(1))
    }

    @Test(arguments: [100, 10_000, 65_536])
    func `an incomplete frame holds little more than has arrived of it`(pieceBytes: Int) throws {
        var limits = Self.limits
        (limits.type, limits.messageBytesMax, limits.heldBytesMax) = (.router, 4 << 20, .max)
        var table = ConnectionTable(limits: limits)
        try add(1, to: &table)
        let body = (0..<3 << 20).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 11) }
        let frame = ZMTP.header(bodyBytes: body.count) + body
        var events: [ZMTPDecoder.Event] = []
        var arrived = 0
        while arrived < frame.count {
            #expect(events.isEmpty)
            let piece = frame[arrived...].prefix(pieceBytes)
            arrived += piece.count
            try piece.withRawBytes { piece throws(ZMTPFault) in
                try table.read(piece, from: id(1), at: .zero, into: &events)
            }
            #expect(table.heldBytes <= min(2 * arrived, arrived + PartialFrame.partBytesMax) + 128)
        }
        #expect(events == [.message(body[...])])
        #expect(table.heldBytes == 0)
    }

    @Test func `peers that are silent, or are not established, for too long are found`() throws {
        var limits = Self.limits
        limits.type = .router
        limits.silenceMax = .seconds(60)
        var table = ConnectionTable(limits: limits)
        for number in 1...3 as ClosedRange<UInt32> { try add(number, to: &table, at: .seconds(1)) }
        for number in 1...2 as ClosedRange<UInt32> { #expect(establish(number, in: &table)) }
        // Whatever it sends, it is not established.
        #expect(try read(&table, [0, 1, 1], from: 3, at: .seconds(10)) == nil)
        #expect(table.overdue(at: .seconds(11)) == [])
        #expect(table.overdue(at: .seconds(12)) == [id(3)])
        table.remove(id(3))
        #expect(table.overdue(at: .seconds(61)) == [])
        #expect(try read(&table, [0, 1, 1], from: 2, at: .seconds(61)) == nil)
        #expect(table.overdue(at: .seconds(62)) == [id(1)])
    }

    @Test
    func `waiting answers are bounded by connection, key and sum, and light readers have room`() {
        let budget = OutboundQueue.Budget(bytesMax: 100_000)
        func queue(_ share: OutboundQueue.Share) -> OutboundQueue {
            OutboundQueue(bytesMax: 30_000, share: share, budget: budget)
        }
        func fill(_ queue: OutboundQueue) -> [SharedFrame] {
            var frames: [SharedFrame] = []
            while queue.hasRoom {
                let body = [UInt8](repeating: 1, count: 1_000)
                let frame = body.withUnsafeBytes { SharedFrame($0, sealedBy: nil, in: budget) }
                queue.count(frame.byteCount)
                frames.append(frame)
            }
            return frames
        }
        let greedy = OutboundQueue.Share()
        let one = queue(greedy)
        var held = fill(one)
        #expect((30_000..<33_000).contains(budget.heldBytes))
        for _ in 0..<10 { held += fill(queue(greedy)) }
        #expect((50_000..<53_000).contains(budget.heldBytes), "one key fills half of it")
        let modest = queue(OutboundQueue.Share())
        #expect(modest.hasRoom)
        held += fill(modest)
        #expect(budget.heldBytes < 100_000)
        for frame in held.prefix(20) { one.uncount(frame.byteCount) }
        held.removeFirst(20)
        #expect(one.hasRoom, "what was sent makes room")
    }
}
