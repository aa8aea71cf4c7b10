import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Keeps messages of nodes while the sequencer reads its log, within a bound. Messages beyond the bound are
/// lost, as on a broken connection, and nodes send them again.
struct EarlyMessages {
    static let countMax = 1_024
    static let bytesMax = 4 << 20

    private var inputs: [RouterInput] = []
    private var bytes = 0

    mutating func add(_ input: RouterInput) {
        switch input {
        case .message(let route, let frame):
            // A hello begins a connection anew.
            if (try? Frame.header(of: frame))?.kind == .hello { remove(route) }
            guard inputs.count < Self.countMax, bytes + frame.count <= Self.bytesMax else { return }
            inputs.append(input)
            bytes += frame.count
        case .ended(let route): remove(route)
        case .malformed: break
        }
    }

    /// Removes the messages of a connection: on one that has ended, nobody waits for answers.
    private mutating func remove(_ route: RoutingID) {
        inputs.removeAll { input in
            guard case .message(route, let frame) = input else { return false }
            bytes -= frame.count
            return true
        }
    }

    /// The last hello of each connection.
    var hellos: [(RoutingID, Bytes)] {
        inputs.compactMap { input in
            guard case .message(let route, let frame) = input,
                (try? Frame.header(of: frame))?.kind == .hello
            else { return nil }
            return (route, frame)
        }
    }

    /// Takes the messages that were kept, oldest first.
    mutating func takeAll() -> [RouterInput] {
        defer { self = EarlyMessages() }
        return inputs
    }
}
