import ConfluxVocabulary

@testable import ConfluxZeroMQ

extension FuzzTarget {
    /// How a serving socket reads its connections.
    static let connectionTargets: [FuzzTarget] = [
        FuzzTarget(name: "connection", lengthMax: 4_096) { bytes in
            // In one piece, and in small pieces.
            let whole = ConnectionRun.events(of: bytes, pieceBytes: max(1, bytes.count))
            let pieces = ConnectionRun.events(of: bytes, pieceBytes: 1 + bytes.count % 7)
            require(whole == pieces, "pieces count: \(whole), \(pieces)")
        },
        FuzzTarget(name: "curve-connections", lengthMax: 512) { bytes in
            var run = ConnectionRun()
            run.play(Dice(bytes))
        },
    ]
}

/// Encrypted connections of one socket, from their first byte on. One of them is good. The messages of the others are
/// drawn: well-formed commands with wrong contents, sealed messages with any contents, and any bytes.
private struct ConnectionRun {
    private struct Peer {
        var client: CurveHandshake
        var welcome: [UInt8]?
        var isAdmitted = false
    }

    private static let server = CurveKeyPair.random()
    private static let clients = (0..<3).map { _ in CurveKeyPair.random() }
    private static let good = RoutingID(number: 1)
    private static let limits = ConnectionTable.Limits(
        type: .router, key: server, connectionsMax: 4, handshakesMax: 3, messageBytesMax: 4_096,
        heldBytesMax: 16_384, handshakeMax: .seconds(10), silenceMax: .seconds(60))

    private var table = ConnectionTable(limits: limits)
    private var peers: [RoutingID: Peer] = [:]
    /// The connections whose handshakes are not complete.
    private var strangers: [RoutingID: ZMTPDecoder] = [:]
    private var last: UInt32 = 1
    private var now = Duration.zero
    /// How many messages the good connection has sent.
    private var saidCount: UInt8 = 0

    /// The events of an unencrypted connection with these bytes.
    static func events(
        of bytes: [UInt8], pieceBytes: Int
    ) -> (events: [ZMTPDecoder.Event], fault: ZMTPFault?) {
        var decoder = ZMTPDecoder(.router, messageBytesMax: 1_024)
        var events: [ZMTPDecoder.Event] = []
        // The handshake comes first, so that frames are soon reached, unless the first byte says otherwise.
        let begins = bytes.first.map { $0 < 200 } ?? false
        let handshake =
            ZMTP.greeting(.null) + ZMTP.command("READY", CurveHandshake.dealer)
        var rest = ((begins ? handshake : []) + bytes.dropFirst())[...]
        while !rest.isEmpty {
            let piece = rest.prefix(pieceBytes)
            rest = rest.dropFirst(piece.count)
            do throws(ZMTPFault) {
                try piece.withRawBytes { bytes throws(ZMTPFault) in
                    try decoder.decode(bytes, into: &events)
                }
            } catch {
                return (events, error)
            }
            require(decoder.heldBytes <= 4 * 1_024, "\(decoder.heldBytes) bytes are held")
        }
        return (events, nil)
    }

    mutating func play(_ dice: Dice) {
        var dice = dice
        connect(Self.good, as: Self.clients[0])
        say(Self.good, greet(Self.good))
        if let welcome = peers[Self.good]?.welcome {
            say(Self.good, certain { try peers[Self.good]?.client.initiate(welcome) } ?? [])
        }
        require(peers[Self.good]?.isAdmitted == true, "the good one is not admitted")
        while !dice.isEmpty {
            step(&dice)
            while let surplus = table.surplus { end(surplus) }
            check()
            speakWell()
        }
    }

    private mutating func step(_ dice: inout Dice) {
        now += .milliseconds(4 * dice.below(256))
        let bad = peers.keys.filter { $0 != Self.good }.sorted { $0.number < $1.number }
        guard let id = dice.element(of: bad), dice.below(8) > 0 else {
            last += 1
            connect(RoutingID(number: last), as: dice.element(of: Self.clients) ?? Self.clients[1])
            return
        }
        var bytes: [UInt8]
        switch dice.below(8) {
        case 0, 1: bytes = greet(id)
        case 2, 3:
            guard let welcome = peers[id]?.welcome else { return }
            let metadata = dice.flag() ? CurveHandshake.dealer : dice.bytes(upTo: 64)
            bytes = certain { try peers[id]?.client.initiate(welcome, metadata: metadata) } ?? []
        case 4, 5:
            guard peers[id]?.isAdmitted == true else { return }
            let body =
                peers[id]?.client.seal(
                    dice.bytes(upTo: 300), flags: UInt8(dice.below(4))) ?? []
            bytes = ZMTP.header(bodyBytes: body.count) + body
        case 6: bytes = dice.bytes(upTo: 300)
        default:
            // A large frame without an end.
            bytes = [2, 0, 0, 0, 0, 0, 0, 0x0F, 0xFF] + [UInt8](repeating: 7, count: 3_000)
        }
        if dice.below(4) == 0, !bytes.isEmpty {
            bytes[dice.below(256) * bytes.count / 256] ^= UInt8(1 + dice.below(255))
        }
        let pieceBytes = dice.flag() ? max(1, bytes.count) : 1 + dice.below(64)
        for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
            say(id, Array(bytes[start..<min(start + pieceBytes, bytes.count)]))
        }
    }

    private mutating func greet(_ id: RoutingID) -> [UInt8] { peers[id]?.client.begin ?? [] }

    private mutating func connect(_ id: RoutingID, as key: CurveKeyPair) {
        strangers[id] = ZMTPDecoder(
            .router, messageBytesMax: Self.limits.messageBytesMax, curve: CurveSession(Self.server))
        peers[id] = Peer(client: CurveHandshake(server: Self.server.publicKey, key: key))
    }

    private mutating func end(_ id: RoutingID) {
        require(id != Self.good, "the good one has to go")
        table.remove(id)
        peers[id] = nil
        strangers[id] = nil
    }

    /// Reads a peer's bytes like a socket.
    private mutating func say(_ id: RoutingID, _ bytes: [UInt8]) {
        guard peers[id] != nil else { return }
        var events: [ZMTPDecoder.Event] = []
        var fault: ZMTPFault?
        do throws(ZMTPFault) {
            try bytes[...].withRawBytes { bytes throws(ZMTPFault) in
                if strangers[id] != nil {
                    try strangers[id]?.decode(bytes, into: &events)
                } else {
                    try table.read(bytes, from: id, at: now, into: &events)
                }
            }
        } catch {
            fault = error
        }
        for event in events {
            switch event {
            case .answer(let welcome): peers[id]?.welcome = welcome
            case .identified(let key):
                guard let decoder = strangers.removeValue(forKey: id) else { continue }
                table.add(id, decoder, at: now)
                if table.admit(id, key, most: 2) != nil {
                    peers[id]?.isAdmitted = true
                } else {
                    end(id)
                    return
                }
            case .message, .malformed, .ping, .subscription:
                require(peers[id]?.isAdmitted == true, "\(event) of one that is not admitted")
            }
        }
        if fault != nil { end(id) }
        while let excess = table.excess { end(excess) }
    }

    private func check() {
        require(table.heldBytes <= Self.limits.heldBytesMax, "\(table.heldBytes) bytes are held")
        require(table.handshakeCount <= Self.limits.handshakesMax, "\(table.handshakeCount)")
        require(table.establishedCount <= Self.limits.connectionsMax, "\(table.establishedCount)")
        require(
            table.establishedCount == peers.values.count { $0.isAdmitted },
            "\(table.establishedCount) are counted")
        require(!table.overdue(at: now).contains(Self.good), "the good one is overdue")
    }

    /// Checks that the good connection is heard, whatever others do.
    private mutating func speakWell() {
        saidCount &+= 1
        let body = peers[Self.good]?.client.seal([saidCount, 1, 2, 3]) ?? []
        var events: [ZMTPDecoder.Event] = []
        certain {
            try (ZMTP.header(bodyBytes: body.count) + body)[...].withRawBytes {
                try table.read($0, from: Self.good, at: now, into: &events)
            }
        }
        require(events == [.message([saidCount, 1, 2, 3])], "the good one is not heard: \(events)")
    }
}
