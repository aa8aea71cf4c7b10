@testable import ConfluxVocabulary

@testable import ConfluxZeroMQ

extension FuzzTarget {
    /// How a socket that connects reads a peer of any kind.
    static let clientTargets: [FuzzTarget] = [
        FuzzTarget(name: "client-connection", lengthMax: 4_096) { bytes in
            // In one piece, and in small pieces; with the memory of earlier frames, and without.
            let whole = ClientRun.events(of: bytes, pieceBytes: max(1, bytes.count), pool: nil)
            let pieces = ClientRun.events(
                of: bytes, pieceBytes: 1 + bytes.count % 7, pool: ClientRun.pool)
            require(whole == pieces, "pieces count: \(whole), \(pieces)")
        },
        FuzzTarget(name: "curve-client", lengthMax: 512) { bytes in
            var run = ClientRun()
            run.play(Dice(bytes))
        },
    ]
}

/// A client that is connected to a server whose messages are drawn: the correct answers, answers at the wrong time,
/// sealed messages with any contents, and any bytes.
private struct ClientRun {
    private static let server = CurveKeyPair.random()
    private static let key = CurveKeyPair.random()
    private static let ready = ZMTP.command("READY", ZMTP.metadata(.router))
    private static let messageBytesMax = 4_096
    // The targets run on one thread.
    nonisolated(unsafe) static let pool = BufferPool()

    private let session = CurveSession(server)
    private var decoder = ZMTPDecoder(
        .dealer, messageBytesMax: messageBytesMax,
        curve: CurveSession(key, to: server.publicKey), pool: pool)
    /// The client's last bytes.
    private var said: [UInt8] = []
    /// Whether the server has proven that it has its key.
    private var isProven = false

    /// The events of an unencrypted connection with these bytes.
    static func events(
        of bytes: [UInt8], pieceBytes: Int, pool: BufferPool?
    ) -> (events: [ZMTPDecoder.Event], fault: ZMTPFault?) {
        var decoder = ZMTPDecoder(.dealer, messageBytesMax: messageBytesMax, pool: pool)
        var events: [ZMTPDecoder.Event] = []
        // The handshake comes first, so that frames are soon reached, unless the first byte says otherwise.
        let begins = bytes.first.map { $0 < 200 } ?? false
        var rest = ((begins ? ZMTP.greeting(.null) + ready : []) + bytes.dropFirst())[...]
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
            require(
                decoder.heldBytes <= 4 * messageBytesMax, "\(decoder.heldBytes) bytes are held")
        }
        return (events, nil)
    }

    mutating func play(_ dice: Dice) {
        var dice = dice
        require(hear(ZMTP.greeting(.curve)), "a greeting is refused")
        while !dice.isEmpty {
            var bytes = answer(&dice)
            if dice.below(4) == 0, !bytes.isEmpty {
                bytes[dice.below(256) * bytes.count / 256] ^= UInt8(1 + dice.below(255))
            }
            let wasReady = decoder.isReady
            guard hear(bytes) else { return }
            require(
                wasReady || !decoder.isReady || isProven, "a server without its key is believed")
        }
    }

    /// The server's next bytes.
    private mutating func answer(_ dice: inout Dice) -> [UInt8] {
        // The bytes after a command's name.
        func body(_ nameBytes: Int) -> Bytes {
            let headerBytes = said.first.map { $0 & ZMTP.longFlag == 0 } == false ? 9 : 2
            return said.dropFirst(headerBytes + 1 + nameBytes)
        }
        switch dice.below(8) {
        case 0, 1:
            if let welcome = try? session.welcome(body(5)) { return welcome }
            return ZMTP.command("WELCOME", dice.bytes(upTo: 200))
        case 2, 3:
            if (try? session.initiate(body(8))) != nil {
                isProven = true
                return session.ready(dice.flag() ? ZMTP.metadata(.router) : dice.bytes(upTo: 40))
            }
            return ZMTP.command("READY", dice.bytes(upTo: 100))
        case 4, 5:
            guard isProven else { return ZMTP.command("MESSAGE", dice.bytes(upTo: 100)) }
            let body = dice.bytes(upTo: 300)
            var frame = [UInt8](
                repeating: 0, count: CurveSession.frameBytes(payloadBytes: body.count))
            let isCommand = dice.flag()
            body.withUnsafeBytes { body in
                frame.withUnsafeMutableBytes {
                    session.seal(body, isCommand: isCommand, into: $0)
                }
            }
            return frame
        case 6: return ZMTP.error(dice.flag() ? ZMTP.fullStatus : "none")
        default: return dice.bytes(upTo: 300)
        }
    }

    /// - Returns: Whether the connection continues.
    private mutating func hear(_ bytes: [UInt8]) -> Bool {
        var events: [ZMTPDecoder.Event] = []
        do throws(ZMTPFault) {
            try bytes[...].withRawBytes { bytes throws(ZMTPFault) in
                try decoder.decode(bytes, into: &events)
            }
        } catch {
            return false
        }
        for event in events {
            switch event {
            case .answer(let bytes): said = bytes
            case .message, .malformed, .ping, .subscription:
                require(decoder.isReady && isProven, "\(event) of a server that proved nothing")
            case .identified: fail("a client lets in nobody")
            }
        }
        return true
    }
}
