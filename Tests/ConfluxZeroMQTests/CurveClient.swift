import CSodium
import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// The client's side of CurveZMQ, to say what libzmq would not.
final class CurveClient {
    private let key: CurveKeyPair
    private let session = CurveKeyPair.random()
    private var shared: [UInt8] = []
    private var nonce: UInt64 = 0

    private init(_ key: CurveKeyPair) { self.key = key }

    /// Shakes hands with a server's session.
    static func connect(
        to server: CurveKeyPair, as key: CurveKeyPair
    ) throws -> (CurveSession, CurveClient) {
        let ours = CurveSession(server)
        let theirs = CurveClient(key)
        let own = theirs.session
        func box(_ content: [UInt8], _ nonce: [UInt8], _ peer: CurvePublicKey, _ own: CurveKeyPair)
            -> [UInt8]
        {
            var box = [UInt8](repeating: 0, count: content.count + 16)
            _ = crypto_box_easy(
                &box, content, UInt64(content.count), nonce, peer.bytes, own.secret.pointer)
            return box
        }
        let first = theirs.nextNonce()
        let welcome = try ours.welcome(
            ([1, 0] + [UInt8](repeating: 0, count: 72) + own.publicKey.bytes + first
                + box(
                    [UInt8](repeating: 0, count: 64), Array("CurveZMQHELLO---".utf8) + first,
                    server.publicKey, own))[...])
        // Behind the frame's header and the name come a nonce and the box.
        let body = Array(welcome[10...])
        var content = [UInt8](repeating: 0, count: 128)
        try #require(
            crypto_box_open_easy(
                &content, Array(body[16...]), 144, Array("WELCOME-".utf8) + body[..<16],
                server.publicKey.bytes, own.secret.pointer) == 0)
        let peer = CurvePublicKey(bytes: Array(content[..<32]))
        let tail = [UInt8](repeating: 4, count: 16)
        let vouch = box(
            own.publicKey.bytes + server.publicKey.bytes, Array("VOUCH---".utf8) + tail, peer, key)
        let second = theirs.nextNonce()
        let metadata: [UInt8] = [11] + Array("Socket-Type".utf8) + [0, 0, 0, 6] + "DEALER".utf8
        let initiate =
            Array(content[32...]) + second
            + box(
                key.publicKey.bytes + tail + vouch + metadata,
                Array("CurveZMQINITIATE".utf8) + second, peer, own)
        let proven = try ours.initiate(initiate[...])
        try #require(proven.key == key.publicKey && Array(proven.metadata) == metadata)
        _ = ours.ready([])
        theirs.shared = [UInt8](repeating: 0, count: 32)
        _ = crypto_box_beforenm(&theirs.shared, peer.bytes, own.secret.pointer)
        return (ours, theirs)
    }

    /// A sealed message, as it stands in a frame.
    func seal(_ payload: [UInt8]) -> [UInt8] {
        let short = nextNonce()
        let content = [0] + payload
        var box = [UInt8](repeating: 0, count: content.count + 16)
        crypto_box_easy_afternm(
            &box, content, UInt64(content.count), Array("CurveZMQMESSAGEC".utf8) + short, shared)
        return [7] + Array("MESSAGE".utf8) + short + box
    }

    private func nextNonce() -> [UInt8] {
        nonce += 1
        return (0..<8).map { UInt8(truncatingIfNeeded: nonce >> (56 - 8 * $0)) }
    }
}
