import CSodium
import ConfluxVocabulary

/// One side of CurveZMQ on one connection. The handshake proves who each side is, and what follows
/// is encrypted. See [the RFC](https://rfc.zeromq.org/spec/26/).
///
///     client                         server
///       │ HELLO     C', box to S       │  the client knows the server's key
///       │ WELCOME   S', cookie         │  the server has the secret half of S
///       │ INITIATE  cookie, C, vouch   │  the client has the secret half of C
///       │ READY                        │  the server admits C
///
/// *Invariants*: no nonce is used twice with one key, and the peer's nonces rise. A box that doesn't open ends the
/// connection.
///
/// Confined to one thread at a time: the one that makes the handshake, and then the one that owns the socket.
final class CurveSession {
    /// How many bytes a HELLO has, and an INITIATE at least.
    static let helloBytes = 194
    static let initiateBytesMin = 248
    /// How many bytes a sealed message has besides its payload: the name, the nonce, the
    /// authentication code and the flags.
    static let overheadBytes = 8 + nonceBytes + macBytes + 1

    static let nonceBytes = 8
    static let macBytes = 16
    private static let keyBytes = CurvePublicKey.byteCount
    static let cookieBytes = 96

    /// Which side of the connection this is.
    enum Side {
        case server(CurveKeyPair)
        case client(CurveKeyPair, server: CurvePublicKey)
    }

    /// What is kept only until the handshake ends.
    struct Handshake {
        /// This side's key pair for this connection.
        let own = CurveKeyPair.random()
        /// The other side's key for this connection. Only the server's side has it here.
        var peerKey: [UInt8] = []
        /// The cookie that the server sent.
        var cookie: [UInt8] = []
    }

    let side: Side
    /// The keys of HELLOs that were answered. Only a server's side may have it.
    let seen: SeenKeys?
    var handshake: Handshake?
    /// The secret that both sides' keys for this connection give.
    var shared: [UInt8] = []
    private var nonce: UInt64 = 0
    var peerNonce: UInt64 = 0

    /// The server's side of a connection.
    ///
    /// - Parameters:
    ///   - server: The server's key pair.
    ///   - seen: The keys of HELLOs that were answered, on any connection; nil if copies of them are answered, too.
    init(_ server: CurveKeyPair, seen: SeenKeys? = nil) {
        side = .server(server)
        self.seen = seen
    }

    /// The client's side of a connection.
    init(_ client: CurveKeyPair, to server: CurvePublicKey) {
        side = .client(client, server: server)
        seen = nil
    }

    deinit { sodium_memzero(&shared, shared.count) }

    private var isServer: Bool {
        if case .server = side { true } else { false }
    }

    // MARK: Messages

    /// Opens a message.
    ///
    /// - Parameter body: The frame's body.
    /// - Returns: The flags and the payload.
    /// - Throws: ``ZMTPFault`` if the peer did not seal it, or if its nonce is not higher than the
    ///   last.
    func open(_ body: Bytes) throws(ZMTPFault) -> (flags: UInt8, payload: Bytes) {
        guard body.count >= Self.overheadBytes, body.starts(with: Self.messageName) else {
            throw ZMTPFault("a message that is not sealed")
        }
        let short = Array(body.dropFirst(8).prefix(Self.nonceBytes))
        let number = Self.number(short)
        guard number > peerNonce,
            let content = Self.open(
                body.dropFirst(8 + Self.nonceBytes),
                Array((isServer ? "CurveZMQMESSAGEC" : "CurveZMQMESSAGES").utf8) + short, shared)
        else { throw ZMTPFault("a message that does not open") }
        peerNonce = number
        return (content[0], content.dropFirst())
    }

    /// The size of the frame for a payload of this size, sealed, including the header.
    static func frameBytes(payloadBytes: Int) -> Int {
        let body = payloadBytes + overheadBytes
        return body + (body > 255 ? ZMTP.headerBytesMax : 2)
    }

    /// Seals a message, and writes its frame.
    ///
    /// - Parameters:
    ///   - payload: The message.
    ///   - isCommand: Whether it is a command.
    ///   - frame: Where to write it; of the size that ``frameBytes(payloadBytes:)`` gives.
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
        let nonce =
            Array((isServer ? "CurveZMQMESSAGES" : "CurveZMQMESSAGEC").utf8) + short
        let bytes = content.bindMemory(to: UInt8.self)
        // It may encrypt in place, since it is a stream cipher.
        crypto_box_detached_afternm(
            bytes.baseAddress!, box.bindMemory(to: UInt8.self).baseAddress!, bytes.baseAddress!,
            UInt64(bytes.count), nonce, shared)
    }

    private static let messageName = [7] + Array("MESSAGE".utf8)

    func nextNonce() -> [UInt8] {
        nonce += 1
        return (0..<8).map { UInt8(truncatingIfNeeded: nonce >> (56 - 8 * $0)) }
    }

    static func number(_ short: [UInt8]) -> UInt64 {
        short.reduce(0) { $0 << 8 | UInt64($1) }
    }

    // MARK: Boxes

    /// Computes the secret that two key pairs share.
    static func agree(
        _ publicKey: [UInt8], _ secret: CurveSecret
    ) throws(ZMTPFault) -> [UInt8] {
        var key = [UInt8](repeating: 0, count: keyBytes)
        guard crypto_box_beforenm(&key, publicKey, secret.pointer) == 0 else {
            throw ZMTPFault("a key that is none")
        }
        return key
    }

    static func seal(_ content: [UInt8], _ nonce: [UInt8], _ key: [UInt8]) -> [UInt8] {
        var box = [UInt8](repeating: 0, count: content.count + macBytes)
        crypto_box_easy_afternm(&box, content, UInt64(content.count), nonce, key)
        return box
    }

    static func open(_ box: Bytes, _ nonce: [UInt8], _ key: [UInt8]) -> [UInt8]? {
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
