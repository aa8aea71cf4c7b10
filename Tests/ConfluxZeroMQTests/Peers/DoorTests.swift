import CSockets
import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// What peers cause before their handshakes are complete. No test here calls the socket meanwhile, so its owner does
/// none of that work.
@Suite struct DoorTests {
    private let server = CurveKeyPair.random()
    private let client = CurveKeyPair.random()

    private func router(
        isEncrypted: Bool = true, _ adjust: (inout SocketSettings) -> Void = { _ in }
    ) throws -> (RouterSocket, Endpoint) {
        var settings = SocketSettings.test
        if isEncrypted { settings.security = .server(server) }
        adjust(&settings)
        let router = try RouterSocket(settings: settings)
        return (router, try router.bind(Endpoint("tcp://127.0.0.1:0")))
    }

    /// Makes the handshake up to INITIATE.
    ///
    /// - Returns: The connection, the client's side, and INITIATE.
    private func shakeHands(
        at endpoint: Endpoint, as key: CurveKeyPair
    ) throws -> (RawStream, CurveHandshake, [UInt8]) {
        let stream = try RawStream(to: endpoint)
        var handshake = CurveHandshake(server: server.publicKey, key: key)
        try stream.send(handshake.begin)
        let answer = try stream.receive(count: ZMTP.greetingBytes + Self.welcomeBytes)
        let initiate = try handshake.initiate(Array(answer[ZMTP.greetingBytes...]))
        return (stream, handshake, initiate)
    }

    private static let welcomeBytes = 2 + 8 + 160

    @Test func `a handshake needs nothing of the socket's owner`() throws {
        let (router, endpoint) = try router()
        let (stream, handshake, initiate) = try shakeHands(at: endpoint, as: client)
        try stream.send(initiate)
        // Now the owner admits the peer.
        var peer = handshake
        try wait(for: router, pause: .milliseconds(5)) {
            while let input = try router.receive() { Issue.record("\(input) came too early") }
            return stream.hasInput ? () : nil
        }
        _ = try stream.receive()
        let body = peer.seal([1, 2])
        try stream.send(ZMTP.header(bodyBytes: body.count) + body)
        let input = try wait(for: router) { try router.receive() }
        #expect(input == .message(from: input.peer, body: [1, 2]))
        #expect(router.key(of: input.peer) == client.publicKey)
    }

    @Test func `a key that may not connect, or is barred, is refused without the socket's owner`()
        throws
    {
        let (router, endpoint) = try router()
        let barred = CurveKeyPair.random()
        router.connectionsMax = { $0 == barred.publicKey ? 0 : nil }
        for (key, status) in [(client, ZMTP.refusedStatus), (barred, ZMTP.fullStatus)] {
            let (stream, _, initiate) = try shakeHands(at: endpoint, as: key)
            try stream.send(initiate)
            #expect(try stream.receiveAll() == ZMTP.error(status))
        }
    }

    @Test func `a HELLO is answered once, however often it comes`() throws {
        let (router, endpoint) = try router()
        var handshake = CurveHandshake(server: server.publicKey, key: client)
        let recorded = handshake.begin
        let first = try RawStream(to: endpoint)
        try first.send(recorded)
        let answer = try first.receive(count: ZMTP.greetingBytes + Self.welcomeBytes)
        let initiate = try handshake.initiate(Array(answer[ZMTP.greetingBytes...]))
        // The copies don't disturb the connection that they were recorded from.
        for _ in 0..<3 {
            let copy = try RawStream(to: endpoint)
            try copy.send(recorded)
            #expect(try copy.receiveAll() == ZMTP.greeting(.curve))
        }
        // An INITIATE of another connection proves nothing.
        let (other, _, _) = try shakeHands(at: endpoint, as: client)
        try other.send(initiate)
        #expect(try other.receiveAll() == [])
        try first.send(initiate)
        try wait(for: router, pause: .milliseconds(5)) {
            while let input = try router.receive() { Issue.record("\(input)") }
            return first.hasInput ? () : nil
        }
        #expect(try !first.receive().isEmpty)
    }

    @Test func `the newest keys are remembered`() {
        let seen = SeenKeys()
        func key(_ number: Int) -> [UInt8] {
            (0..<32).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 4))) }
        }
        for number in 0..<SeenKeys.most { seen.add(key(number)) }
        seen.add(key(1))
        #expect(seen.contains(key(0)) && seen.contains(key(SeenKeys.most - 1)))
        for number in 0..<10 { seen.add(key(SeenKeys.most + number)) }
        #expect(!seen.contains(key(9)) && seen.contains(key(10)))
        #expect(seen.contains(key(SeenKeys.most + 9)))
    }

    @Test(arguments: [false, true])
    func `a peer that dribbles its handshake is cut off`(isEncrypted: Bool) throws {
        let (router, endpoint) = try router(isEncrypted: isEncrypted) {
            $0.handshakeInterval = .milliseconds(100)
        }
        let stream = try RawStream(to: endpoint)
        try stream.send([0xFF, 0, 0])
        let mechanism = ZMTP.greeting(isEncrypted ? .curve : .null)
        #expect(try stream.receiveAll() == mechanism)
        withExtendedLifetime(router) {}
    }

    @Test func `peers that have arrived wait for the owner, in a bounded number`() throws {
        let (router, endpoint) = try router(isEncrypted: false) { $0.handshakesMax = 4 }
        let greeting = ZMTP.greeting(.null)
        let ready = ZMTP.command("READY", CurveHandshake.dealer)
        var streams: [RawStream] = []
        for number in 0..<20 as Range<UInt8> {
            let stream = try RawStream(to: endpoint)
            try stream.send(greeting + ready + [0, 1, number])
            streams.append(stream)
            // It is served, or turned away.
            let answer = try stream.receiveAtLeast(number < 4 ? greeting.count + 1 : 0)
            #expect((answer.count > greeting.count) == (number < 4))
        }
        #expect(router.levels.handshakes.level <= 4)
        for number in 0..<4 as Range<UInt8> {
            let input = try wait(for: router) { try router.receive() }
            #expect(input == .message(from: input.peer, body: [number]))
        }
    }

    @Test func `a failing system call of one connection ends that connection, and no other`() throws
    {
        let (router, endpoint) = try router(isEncrypted: false)
        var settings = SocketSettings.test
        settings.sendQueueMessages = 1_000
        let (first, second) = (
            try ClientSocket(.dealer, settings: settings),
            try ClientSocket(.dealer, settings: settings)
        )
        var peers: [RoutingID] = []
        var descriptors: [Set<Int32>] = [Self.sockets(at: endpoint)]
        for dealer in [first, second] {
            try dealer.connect(endpoint)
            try router.shakeHands(with: dealer)
            #expect(try dealer.send([1]) == .sent)
            peers.append(try wait(for: router) { try router.receive() }.peer)
            descriptors.append(Self.sockets(at: endpoint))
        }
        let own = try #require(descriptors[1].subtracting(descriptors[0]).first)
        // As if the system could not watch the first connection any more.
        conflux_unwatch(router.descriptor, own)
        let frame = [UInt8](repeating: 7, count: 1 << 20)
        var outcome = SendOutcome.sent
        for _ in 0..<100 where outcome == .sent { outcome = try router.send(frame, to: peers[0]) }
        #expect(outcome == .unreachable)
        #expect(try wait(for: router) { try router.receive() } == .ended(peers[0]))
        #expect(try router.send([2], to: peers[1]) == .sent)
        #expect(try wait(for: second, serving: router) { try second.message() } == [2])
    }

    /// The descriptors of this process's sockets on a port, without listeners.
    private static func sockets(at endpoint: Endpoint) -> Set<Int32> {
        Set(
            (3..<1_024).filter { descriptor in
                var address = sockaddr_storage()
                var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
                let isConnected = withUnsafeMutablePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        getpeername(descriptor, $0, &length) == 0
                            && getsockname(descriptor, $0, &length) == 0
                    }
                }
                guard isConnected, address.ss_family == AF_INET else { return false }
                return withUnsafePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                        UInt16(bigEndian: $0.pointee.sin_port) == endpoint.port
                    }
                }
            })
    }

    // MARK: Who is served first

    private func origin(_ number: UInt64) -> StrangerTable.Origin {
        StrangerTable.Origin(family: 2, network: number)
    }

    @Test func `the address with the most strangers loses one, and addresses have their turns`() {
        var table = StrangerTable()
        table.add(1, from: origin(1), at: .zero)
        for number in 2...5 as ClosedRange<UInt32> { table.add(number, from: origin(2), at: .zero) }
        table.add(6, from: origin(3), at: .seconds(1))
        #expect(table.surplus == 2)
        table.remove(2)
        #expect(table.surplus == 3)
        for number in [3, 1, 4, 6, 5] as [UInt32] { table.wait(number, isFirst: false) }
        table.wait(4, isFirst: true)
        var served: [UInt32] = []
        while let number = table.next() { served.append(number) }
        #expect(served == [5, 1, 6, 4, 3])
        #expect(!table.hasWaiting)
        #expect(table.overdue(at: .seconds(2), after: .seconds(1)).sorted() == [1, 3, 4, 5])
    }

    @Test func `a stranger that goes on after its WELCOME comes first, however many others wait`() {
        var table = StrangerTable()
        for number in 1...1_000 as ClosedRange<UInt32> {
            table.add(number, from: origin(1), at: .zero)
            table.wait(number, isFirst: false)
        }
        table.add(2_000, from: origin(1), at: .zero)
        table.wait(2_000, isFirst: true)
        table.add(2_001, from: origin(2), at: .zero)
        table.wait(2_001, isFirst: false)
        #expect(table.next() == 2_000)
        #expect(table.next() == 1_000)
        #expect(table.next() == 2_001)
        table.remove(999)
        #expect(table.next() == 998)
        for number in 1...2_001 as ClosedRange<UInt32> { table.remove(number) }
        #expect(table.count == 0 && !table.hasWaiting && table.surplus == nil)
    }
}
