import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// The client's side of an encrypted connection.
final class CurveClient {
    private var handshake: CurveHandshake

    private init(_ handshake: CurveHandshake) { self.handshake = handshake }

    /// Makes the handshake with a server's session.
    static func connect(
        to server: CurveKeyPair, as key: CurveKeyPair
    ) throws -> (CurveSession, CurveClient) {
        let ours = CurveSession(server)
        var theirs = CurveHandshake(server: server.publicKey, key: key)
        let welcome = try ours.welcome(theirs.hello[...])
        let proven = try ours.initiate(theirs.initiateBody(welcome)[...])
        try #require(proven.key == key.publicKey)
        _ = ours.ready([])
        return (ours, CurveClient(theirs))
    }

    /// A sealed message, as a frame contains it.
    func seal(_ payload: [UInt8]) -> [UInt8] { handshake.seal(payload) }
}
