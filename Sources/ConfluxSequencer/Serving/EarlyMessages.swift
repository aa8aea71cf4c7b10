import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Keeps messages of nodes while the sequencer reads its log, within bounds that the keys share. Messages beyond
/// them are lost, as on a broken connection, and nodes send them again.
struct EarlyMessages {
    static let countMax = 1_024
    static let bytesMax = 4 << 20

    private struct Kept {
        let input: RouterInput
        let peer: SharingPeer
    }

    private var kept: [Kept] = []
    /// *Invariant*: count each message in `kept` once.
    private var counts = Shares<SharingPeer>()
    private var bytes = Shares<SharingPeer>()

    /// Keeps a message, or notes that a connection has ended.
    ///
    /// - Parameters:
    ///   - input: What the socket received.
    ///   - key: The key of the connection; nil if it has none.
    mutating func add(_ input: RouterInput, of key: CurvePublicKey? = nil) {
        switch input {
        case .message(let route, let frame):
            // A hello begins a connection anew.
            if (try? Frame.header(of: frame))?.kind == .hello { remove(route) }
            let peer = SharingPeer(route, key: key)
            guard counts.hasRoom(for: peer, of: Self.countMax),
                bytes.hasRoom(for: peer, frame.count, of: Self.bytesMax)
            else { return }
            kept.append(Kept(input: input, peer: peer))
            counts.add(of: peer)
            bytes.add(frame.count, of: peer)
        case .ended(let route): remove(route)
        case .malformed: break
        }
    }

    /// Removes the messages of a connection: on one that has ended, nobody waits for answers.
    private mutating func remove(_ route: RoutingID) {
        kept.removeAll { message in
            guard case .message(route, let frame) = message.input else { return false }
            counts.remove(of: message.peer)
            bytes.remove(frame.count, of: message.peer)
            return true
        }
    }

    /// The last hello of each connection.
    var hellos: [(RoutingID, Bytes)] {
        kept.compactMap { message in
            guard case .message(let route, let frame) = message.input,
                (try? Frame.header(of: frame))?.kind == .hello
            else { return nil }
            return (route, frame)
        }
    }

    /// Takes the messages that were kept, oldest first.
    mutating func takeAll() -> [RouterInput] {
        defer { self = EarlyMessages() }
        return kept.map(\.input)
    }
}
