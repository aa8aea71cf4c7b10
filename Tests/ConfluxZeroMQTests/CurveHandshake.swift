import CSodium

@testable import ConfluxZeroMQ

/// The client's side of a CurveZMQ handshake, byte by byte, so that it can send what libzmq would not.
struct CurveHandshake {
    /// The metadata of a dealer.
    static let dealer: [UInt8] = [11] + Array("Socket-Type".utf8) + [0, 0, 0, 6] + "DEALER".utf8

    private let server: CurvePublicKey
    private let key: CurveKeyPair
    private let own = CurveKeyPair.random()
    private var nonce: UInt64 = 0
    /// The shared key of the connection, after ``initiate(_:)``.
    private(set) var shared: [UInt8] = []

    init(server: CurvePublicKey, key: CurveKeyPair) {
        self.server = server
        self.key = key
    }

    /// The greeting, and HELLO.
    var begin: [UInt8] {
        mutating get { ZMTP.greeting(.curve) + ZMTP.command("HELLO", hello) }
    }

    /// The body of HELLO, after its name.
    var hello: [UInt8] {
        mutating get {
            let short = nextNonce()
            return [1, 0] + [UInt8](repeating: 0, count: 72) + own.publicKey.bytes + short
                + box(
                    [UInt8](repeating: 0, count: 64), Array("CurveZMQHELLO---".utf8) + short,
                    server)
        }
    }

    /// INITIATE as a frame, which answers a WELCOME.
    mutating func initiate(
        _ welcome: [UInt8], metadata: [UInt8] = CurveHandshake.dealer
    ) throws -> [UInt8] {
        let body = try Array("\u{8}INITIATE".utf8) + initiateBody(welcome, metadata: metadata)
        return ZMTP.header(bodyBytes: body.count, isCommand: true) + body
    }

    /// The body of INITIATE, after its name.
    mutating func initiateBody(
        _ welcome: [UInt8], metadata: [UInt8] = CurveHandshake.dealer
    ) throws -> [UInt8] {
        // After the frame's header and the name come a nonce and the box.
        let body = Array(welcome[10...])
        var content = [UInt8](repeating: 0, count: 128)
        guard
            body.count == 160,
            crypto_box_open_easy(
                &content, Array(body[16...]), 144, Array("WELCOME-".utf8) + body[..<16],
                server.bytes, own.secret.pointer) == 0
        else { throw CurveSample.noWelcome }
        let peer = CurvePublicKey(bytes: Array(content[..<32]))
        let tail = [UInt8](repeating: 4, count: 16)
        let vouch = box(
            own.publicKey.bytes + server.bytes, Array("VOUCH---".utf8) + tail, peer, as: key)
        let short = nextNonce()
        shared = [UInt8](repeating: 0, count: 32)
        _ = crypto_box_beforenm(&shared, peer.bytes, own.secret.pointer)
        return Array(content[32...]) + short
            + box(
                key.publicKey.bytes + tail + vouch + metadata,
                Array("CurveZMQINITIATE".utf8) + short, peer)
    }

    /// A sealed message or command, as a frame contains it.
    mutating func seal(_ payload: [UInt8], flags: UInt8 = 0) -> [UInt8] {
        let short = nextNonce()
        let content = [flags] + payload
        var box = [UInt8](repeating: 0, count: content.count + 16)
        crypto_box_easy_afternm(
            &box, content, UInt64(content.count), Array("CurveZMQMESSAGEC".utf8) + short, shared)
        return [7] + Array("MESSAGE".utf8) + short + box
    }

    mutating func nextNonce() -> [UInt8] {
        nonce += 1
        return (0..<8).map { UInt8(truncatingIfNeeded: nonce >> (56 - 8 * $0)) }
    }

    private func box(
        _ content: [UInt8], _ nonce: [UInt8], _ peer: CurvePublicKey, as pair: CurveKeyPair? = nil
    ) -> [UInt8] {
        var box = [UInt8](repeating: 0, count: content.count + 16)
        _ = crypto_box_easy(
            &box, content, UInt64(content.count), nonce, peer.bytes,
            (pair ?? own).secret.pointer)
        return box
    }
}

/// Why the imitated client can't continue.
enum CurveSample: Error {
    /// The supposed WELCOME can't be opened.
    case noWelcome
}
