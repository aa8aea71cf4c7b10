import CSodium

@testable import ConfluxZeroMQ

/// The client's side of a CurveZMQ handshake, byte by byte, to say what libzmq would not.
struct CurveHandshake {
    /// What a dealer says of itself.
    static let dealer: [UInt8] = [11] + Array("Socket-Type".utf8) + [0, 0, 0, 6] + "DEALER".utf8

    private let server: CurvePublicKey
    private let key: CurveKeyPair
    private let own = CurveKeyPair.random()
    private var nonce: UInt64 = 0
    /// What both sides' keys of the connection give, behind ``initiate(_:)``.
    private(set) var shared: [UInt8] = []

    init(server: CurvePublicKey, key: CurveKeyPair) {
        self.server = server
        self.key = key
    }

    /// The greeting, and HELLO.
    var begin: [UInt8] {
        mutating get { ZMTP.greeting(.curve) + ZMTP.command("HELLO", hello) }
    }

    /// What follows the name of HELLO.
    var hello: [UInt8] {
        mutating get {
            let short = nextNonce()
            return [1, 0] + [UInt8](repeating: 0, count: 72) + own.publicKey.bytes + short
                + box(
                    [UInt8](repeating: 0, count: 64), Array("CurveZMQHELLO---".utf8) + short,
                    server)
        }
    }

    /// INITIATE, as a frame, in answer to WELCOME.
    mutating func initiate(
        _ welcome: [UInt8], metadata: [UInt8] = CurveHandshake.dealer
    ) throws -> [UInt8] {
        let body = try Array("\u{8}INITIATE".utf8) + initiateBody(welcome, metadata: metadata)
        return ZMTP.header(bodyBytes: body.count, isCommand: true) + body
    }

    /// What follows the name of INITIATE.
    mutating func initiateBody(
        _ welcome: [UInt8], metadata: [UInt8] = CurveHandshake.dealer
    ) throws -> [UInt8] {
        // Behind the frame's header and the name come a nonce and the box.
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

    /// A sealed message or command, as it stands in a frame.
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

/// What a sample of a client can't go on with.
enum CurveSample: Error {
    /// What should be a WELCOME does not open.
    case noWelcome
}
