import CSodium
import ConfluxVocabulary

/// The server's side of CurveZMQ on one connection: it proves who each side is, and encrypts what
/// follows. See [the RFC](https://rfc.zeromq.org/spec/26/).
///
///     client                         server
///       │ HELLO     C', box to S       │  it knows which server it speaks to
///       │ WELCOME   S', cookie         │  the server has the secret half of S
///       │ INITIATE  cookie, C, vouch   │  the client has the secret half of C
///       │ READY                        │  the server admits C
///
/// *Invariants*: a nonce is used once with a key, and those of the peer rise. What does not open ends the
/// connection.
///
/// Confined to the thread that owns the socket.
final class CurveSession {
    /// What a command or a message of the mechanism needs before the box, at least.
    static let helloBytes = 194
    static let initiateBytesMin = 248
    /// What a sealed message has besides its payload: a name, a nonce, the box's seal and flags.
    static let overheadBytes = 8 + nonceBytes + macBytes + 1

    private static let nonceBytes = 8
    private static let macBytes = 16
    private static let keyBytes = CurvePublicKey.byteCount
    private static let cookieBytes = 96

    /// What is known from HELLO to INITIATE, and not kept for longer.
    private struct Handshake {
        /// The server's key of this connection.
        let session = CurveKeyPair.random()
        let cookie = Sodium.random(cookieBytes)
        /// The client's.
        let clientKey: [UInt8]
    }

    private let server: CurveKeyPair
    private var handshake: Handshake?
    /// What both sides' keys of this connection give.
    private var shared: [UInt8] = []
    private var nonce: UInt64 = 0
    private var peerNonce: UInt64 = 0

    init(_ server: CurveKeyPair) { self.server = server }

    deinit { sodium_memzero(&shared, shared.count) }

    // MARK: Handshake

    /// The client says which key it has for this connection.
    ///
    /// - Parameter body: What follows the command's name.
    /// - Returns: What is to be answered.
    /// - Throws: ``ZMTPFault`` when it is meant for another server, or is none.
    func welcome(_ body: Bytes) throws(ZMTPFault) -> [UInt8] {
        guard handshake == nil, shared.isEmpty, body.count == Self.helloBytes, body.first == 1
        else { throw ZMTPFault("a HELLO that is none") }
        let body = Array(body)
        let clientKey = Array(body[74..<106])
        let key = try Self.agree(clientKey, server.secret)
        guard
            Self.open(
                body[114...], Array("CurveZMQHELLO---".utf8) + body[106..<114], key)
                == [UInt8](repeating: 0, count: 64)
        else {
            throw ZMTPFault("a HELLO to another server", says: ZMTP.error(ZMTP.otherServerStatus))
        }
        let handshake = Handshake(clientKey: clientKey)
        self.handshake = handshake
        let tail = Sodium.random(16)
        let box = Self.seal(
            handshake.session.publicKey.bytes + handshake.cookie, Array("WELCOME-".utf8) + tail, key
        )
        return ZMTP.command("WELCOME", tail + box)
    }

    /// The client proves who it is.
    ///
    /// - Parameter body: What follows the command's name.
    /// - Returns: Its key, and what it says of its socket.
    /// - Throws: ``ZMTPFault`` when it does not prove it.
    func initiate(_ body: Bytes) throws(ZMTPFault) -> (key: CurvePublicKey, metadata: Bytes) {
        guard let handshake, body.count >= Self.initiateBytesMin else {
            throw ZMTPFault("an INITIATE that is none")
        }
        self.handshake = nil
        let body = Array(body)
        shared = try Self.agree(handshake.clientKey, handshake.session.secret)
        let short = Array(body[96..<104])
        guard body[..<96].elementsEqual(handshake.cookie),
            let content = Self.open(
                body[104...], Array("CurveZMQINITIATE".utf8) + short, shared)
        else { throw ZMTPFault("an INITIATE that does not open") }
        peerNonce = Self.number(short)
        let key = Array(content[..<32])
        let vouch = Self.open(
            content[48..<128], Array("VOUCH---".utf8) + content[32..<48],
            try Self.agree(key, handshake.session.secret))
        guard vouch == handshake.clientKey + server.publicKey.bytes else {
            throw ZMTPFault("a vouch for another key")
        }
        return (CurvePublicKey(bytes: key), content[128...])
    }

    /// The client is admitted.
    ///
    /// - Parameter metadata: What the server says of its socket.
    /// - Returns: The command that ends the handshake.
    func ready(_ metadata: [UInt8]) -> [UInt8] {
        let short = nextNonce()
        return ZMTP.command(
            "READY", short + Self.seal(metadata, Array("CurveZMQREADY---".utf8) + short, shared))
    }

    // MARK: Messages

    /// Opens a message.
    ///
    /// - Parameter body: The frame's body.
    /// - Returns: The flags, and behind them the payload.
    /// - Throws: ``ZMTPFault`` when it was not sealed by the peer, or came before.
    func open(_ body: Bytes) throws(ZMTPFault) -> (flags: UInt8, payload: Bytes) {
        guard body.count >= Self.overheadBytes, body.starts(with: Self.messageName) else {
            throw ZMTPFault("a message that is not sealed")
        }
        let short = Array(body.dropFirst(8).prefix(Self.nonceBytes))
        let number = Self.number(short)
        guard number > peerNonce,
            let content = Self.open(
                body.dropFirst(8 + Self.nonceBytes),
                Array("CurveZMQMESSAGEC".utf8) + short, shared)
        else { throw ZMTPFault("a message that does not open") }
        peerNonce = number
        return (content[0], content.dropFirst())
    }

    /// How many bytes a frame has with a sealed message of so many bytes, header included.
    static func frameBytes(payloadBytes: Int) -> Int {
        let body = payloadBytes + overheadBytes
        return body + (body > 255 ? ZMTP.headerBytesMax : 2)
    }

    /// Writes a frame with a sealed message.
    ///
    /// - Parameters:
    ///   - payload: What is sealed.
    ///   - isCommand: Whether it is a command.
    ///   - frame: Where to; as long as ``frameBytes(payloadBytes:)`` says.
    func seal(
        _ payload: UnsafeRawBufferPointer, isCommand: Bool = false,
        into frame: UnsafeMutableRawBufferPointer
    ) {
        let header = ZMTP.header(bodyBytes: payload.count + Self.overheadBytes)
        let short = nextNonce()
        frame.copyBytes(from: header + Self.messageName + short)
        let box = UnsafeMutableRawBufferPointer(
            rebasing: frame[(header.count + 8 + Self.nonceBytes)...])
        let content = UnsafeMutableRawBufferPointer(rebasing: box[Self.macBytes...])
        content[0] = isCommand ? 2 : 0
        UnsafeMutableRawBufferPointer(rebasing: content[1...]).copyMemory(from: payload)
        let nonce = Array("CurveZMQMESSAGES".utf8) + short
        let bytes = content.bindMemory(to: UInt8.self)
        // In place: the cipher is a stream.
        crypto_box_detached_afternm(
            bytes.baseAddress!, box.bindMemory(to: UInt8.self).baseAddress!, bytes.baseAddress!,
            UInt64(bytes.count), nonce, shared)
    }

    private static let messageName = [7] + Array("MESSAGE".utf8)

    private func nextNonce() -> [UInt8] {
        nonce += 1
        return (0..<8).map { UInt8(truncatingIfNeeded: nonce >> (56 - 8 * $0)) }
    }

    private static func number(_ short: [UInt8]) -> UInt64 {
        short.reduce(0) { $0 << 8 | UInt64($1) }
    }

    // MARK: Boxes

    /// What two keys give both their owners.
    private static func agree(
        _ publicKey: [UInt8], _ secret: CurveSecret
    ) throws(ZMTPFault) -> [UInt8] {
        var key = [UInt8](repeating: 0, count: keyBytes)
        guard crypto_box_beforenm(&key, publicKey, secret.pointer) == 0 else {
            throw ZMTPFault("a key that is none")
        }
        return key
    }

    private static func seal(_ content: [UInt8], _ nonce: [UInt8], _ key: [UInt8]) -> [UInt8] {
        var box = [UInt8](repeating: 0, count: content.count + macBytes)
        crypto_box_easy_afternm(&box, content, UInt64(content.count), nonce, key)
        return box
    }

    private static func open(_ box: Bytes, _ nonce: [UInt8], _ key: [UInt8]) -> [UInt8]? {
        guard box.count >= macBytes else { return nil }
        var isOpen = false
        let content = [UInt8](unsafeUninitializedCapacity: box.count - macBytes) { buffer, count in
            isOpen = box.withUnsafeBufferPointer { box in
                crypto_box_open_easy_afternm(
                    buffer.baseAddress!, box.baseAddress!, UInt64(box.count), nonce, key) == 0
            }
            count = isOpen ? box.count - macBytes : 0
        }
        return isOpen ? content : nil
    }
}
