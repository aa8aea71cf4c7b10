import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// Encrypted connections between our own sockets.
@Suite struct CurveTests {
    private let server = CurveKeyPair.random()
    private let client = CurveKeyPair.random()

    private func settings(_ security: SocketSecurity) -> SocketSettings {
        var settings = SocketSettings.test
        settings.security = security
        return settings
    }

    private func pair(_ key: CurveKeyPair? = nil, server: CurvePublicKey? = nil) throws -> Pair {
        try Pair(
            router: settings(.server(self.server)),
            dealer: settings(.client(key ?? client, server: server ?? self.server.publicKey)))
    }

    /// Why a dealer's handshake fails.
    private func failure(of dealer: ClientSocket, _ router: RouterSocket) throws
        -> ConnectionFailure
    {
        try wait(for: dealer, serving: router) { try dealer.failure() }
    }

    @Test func `messages pass both ways, and the peer is known by its key`() throws {
        let pair = try pair()
        let peer = try pair.greet()
        #expect(pair.router.key(of: peer) == client.publicKey)
        for count in [0, 1, 200, 222, 223, 255, 256, 70_000, 1 << 20] {
            let frame = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            #expect(try pair.router.send(frame, to: peer) == .sent)
            #expect(try pair.hear() == frame[...])
            try pair.send(frame[...])
            #expect(try pair.receive() == .message(from: peer, body: frame[...]))
        }
    }

    @Test func `each subscriber gets the published messages, with its own key`() throws {
        let publisher = try PublisherSocket(settings: settings(.server(server)))
        let endpoint = try publisher.bind(Endpoint("tcp://127.0.0.1:0"))
        var subscribers: [ClientSocket] = []
        for _ in 0..<3 {
            let subscriber = try ClientSocket(
                .subscriber, settings: settings(.client(.random(), server: server.publicKey)))
            try subscriber.connect(endpoint)
            subscribers.append(subscriber)
            try wait(for: publisher, subscriber) {
                while try subscriber.receive() != nil {}
                return try publisher.receiveSubscriptions(limit: 1) > 0 ? () : nil
            }
        }
        for number in 0..<100 as Range<UInt8> {
            try publisher.send([UInt8](repeating: number, count: 1_000)[...])
        }
        for subscriber in subscribers {
            for number in 0..<100 as Range<UInt8> {
                let frame = try wait(for: subscriber) { try subscriber.message() }
                #expect(frame == [UInt8](repeating: number, count: 1_000)[...])
            }
        }
    }

    @Test func `an unauthorised key is refused, and learns it`() throws {
        let pair = try pair()
        pair.router.connectionsMax = { $0 == client.publicKey ? nil : 1 }
        #expect(try failure(of: pair.dealer, pair.router) == .denied(status: 400))
    }

    @Test func `a key at its limit of connections is refused, and learns it`() throws {
        let pair = try pair()
        pair.router.connectionsMax = { _ in 1 }
        _ = try pair.greet()
        let second = try ClientSocket(
            .dealer, settings: settings(.client(client, server: server.publicKey)))
        try second.connect(pair.endpoint)
        #expect(try failure(of: second, pair.router) == .denied(status: ConnectionFailure.full))
    }

    @Test func `a client with the wrong server key learns it`() throws {
        let pair = try pair(server: client.publicKey)
        #expect(
            try failure(of: pair.dealer, pair.router)
                == .denied(status: ConnectionFailure.otherServer))
    }

    @Test func `a client without a required key, or with an unexpected one, is refused`() throws {
        let keyless = try Pair(router: settings(.server(server)))
        #expect(try failure(of: keyless.dealer, keyless.router) == .otherMechanism)
        let keyed = try Pair(dealer: settings(.client(client, server: server.publicKey)))
        #expect(try failure(of: keyed.dealer, keyed.router) == .otherMechanism)
    }

    @Test func `only clients that are no longer authorised are cut off`() throws {
        let pair = try pair()
        let peer = try pair.greet()
        let other = CurveKeyPair.random()
        let dealer = try ClientSocket(
            .dealer, settings: settings(.client(other, server: server.publicKey)))
        try dealer.connect(pair.endpoint)
        try pair.router.shakeHands(with: dealer)
        #expect(try dealer.send([2]) == .sent)
        guard case .message(let second, [2]) = try pair.receive() else {
            Issue.record("the second peer is not heard")
            return
        }
        pair.router.connectionsMax = { $0 == other.publicKey ? 1 : nil }
        try pair.router.end { $0 != other.publicKey }
        #expect(try pair.receive() == .ended(peer))
        #expect(try pair.router.send([3], to: second) == .sent)
        #expect(try wait(for: dealer) { try dealer.message() } == [3])
    }

    @Test func `a connection gets everything sent before its end, and then ends`() throws {
        let pair = try pair()
        let peer = try pair.greet()
        let frames = (1...8).map { [UInt8](repeating: $0, count: 1 << 20) }
        for frame in frames { #expect(try pair.router.send(frame, to: peer) == .sent) }
        let begun = Moment.now.monotonic
        try pair.router.end(after: .seconds(30)) { _ in true }
        for frame in frames {
            #expect(try pair.hear() == frame[...])
        }
        // Until then, the connection is served.
        try pair.router.review(at: begun + .seconds(29))
        try pair.send([2])
        #expect(try pair.receive() == .message(from: peer, body: [2]))
        try pair.router.review(at: Moment.now.monotonic + .seconds(31))
        #expect(try pair.receive() == .ended(peer))
    }

    // MARK: Attacks

    private static func greeting() -> [UInt8] { ZMTP.greeting(.curve) }

    /// The fault that a decoder finds in bytes that arrive in pieces.
    private func fault(of bytes: [UInt8], pieceBytes: Int) -> ZMTPFault? {
        var decoder = ZMTPDecoder(.router, messageBytesMax: 1_000, curve: CurveSession(server))
        var events: [ZMTPDecoder.Event] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(pieceBytes)
            rest = rest.dropFirst(piece.count)
            do throws(ZMTPFault) {
                try piece.withRawBytes { bytes throws(ZMTPFault) in
                    try decoder.decode(bytes, into: &events)
                }
            } catch {
                return error
            }
        }
        return nil
    }

    @Test(arguments: [1, 7, .max])
    func `an invalid handshake ends the connection`(pieceBytes: Int) {
        let hello = [1, 0] + [UInt8](repeating: 0, count: 72) + client.publicKey.bytes
        let initiate = [UInt8](repeating: 5, count: 400)
        for commands: [UInt8] in [
            // Unencrypted; out of order; an invalid box; too short; without a key.
            ZMTP.command("READY", ZMTP.metadata(.router)),
            [6, 0, 0, 0, 0, 0, 0, 1, 0x99, 8] + Array("INITIATE".utf8) + initiate,
            ZMTP.command("HELLO", hello + [UInt8](repeating: 9, count: 88)),
            ZMTP.command("HELLO", [1, 0]),
            ZMTP.command("HELLO", [1, 0] + [UInt8](repeating: 0, count: 192)),
            ZMTP.command("MESSAGE", [UInt8](repeating: 0, count: 30)),
            [0, 1, 1],
        ] {
            #expect(fault(of: Self.greeting() + commands, pieceBytes: pieceBytes) != nil)
        }
        #expect(fault(of: ZMTP.greeting(.null), pieceBytes: pieceBytes) != nil)
    }

    @Test func `a sealed message that was changed, or comes again, does not open`() throws {
        let (ours, theirs) = try CurveClient.connect(to: server, as: client)
        let sealed = theirs.seal([1, 2, 3])
        #expect(try ours.open(sealed[...]).payload == [1, 2, 3])
        #expect(throws: ZMTPFault.self) { try ours.open(sealed[...]) }
        for index in [0, 9, 20, sealed.count + 3] {
            var changed = theirs.seal([1, 2, 3, 4])
            changed[index % changed.count] ^= 1
            #expect(throws: ZMTPFault.self) { try ours.open(changed[...]) }
        }
        for count in 0..<CurveSession.overheadBytes {
            #expect(throws: ZMTPFault.self) {
                try ours.open(theirs.seal([])[...].prefix(count))
            }
        }
        #expect(try ours.open(theirs.seal([])[...]).payload == [])
    }

    @Test func `keys are read as they are written, and nothing prints a secret`() throws {
        let pair = CurveKeyPair.random()
        let again = try #require(CurveKeyPair(secretText: pair.secretText))
        #expect(again == pair && again.secretText == pair.secretText)
        #expect(CurvePublicKey(pair.publicKey.description) == pair.publicKey)
        #expect(pair.secretText.utf8.count == CurvePublicKey.textCount)
        #expect(!"\(pair)".contains(pair.secretText))
        #expect(!String(reflecting: pair).contains(pair.secretText))
        for text in [
            "", "1234", String(repeating: "~", count: 40), String(repeating: "é", count: 20),
        ] {
            #expect(CurvePublicKey(text) == nil && CurveKeyPair(secretText: text) == nil)
        }
    }
}
