import ConfluxNode
import ConfluxSequencer
import ConfluxZeroMQ

/// A connection of a flood. While nothing can be sent on it, it reconnects every second.
struct FloodPeer {
    private var socket: ClientSocket
    private let connect: () throws -> ClientSocket
    private var spokeAt = ContinuousClock.now
    var speaker = Speaker.unwelcomed
    private(set) var hasBeenWelcome = false
    private let state: Name
    private var said: UInt64 = 0
    private var counter: UInt64 = 1
    /// The frame that could not be sent yet. To make it again would only use up the processor time that is measured.
    private var unsent: [UInt8]?

    init(state: Name, connect: @escaping () throws -> ClientSocket) throws {
        socket = try connect()
        self.connect = connect
        self.state = state
    }

    /// - Returns: Whether its message was sent.
    mutating func speak() throws -> Bool {
        // It reads who it is, and acknowledges nothing.
        while let event = try socket.receive() {
            guard case .message(let frame) = event else { continue }
            switch try Frame.decodeSequencerMessage(frame) {
            case .welcome(let welcome):
                hasBeenWelcome = true
                counter = welcome.lastCounter + 1
                speaker = Speaker(
                    epoch: try Frame.header(of: frame).epoch, session: welcome.incarnation)
            case .receipts(let receipts):
                for run in receipts.runs {
                    counter = max(counter, run.firstCounter + UInt64(run.count))
                }
            default: break
            }
        }
        let frame = unsent ?? Frame.encode(message, by: speaker)
        let outcome = try socket.send(frame)
        unsent = frame
        if outcome == .sent {
            unsent = nil
            said += 1
            spokeAt = .now
        } else if ContinuousClock.now - spokeAt > .seconds(1) {
            socket.close()
            socket = try connect()
            speaker = .unwelcomed
            unsent = nil
            spokeAt = .now
        }
        return outcome == .sent
    }

    private var message: NodeMessage {
        if speaker.session == .none || said.isMultiple(of: 1_000) {
            return .hello(
                Hello(
                    request: said + 1, nonce: .random(), name: nil, role: .member,
                    bridged: [StateBridge(state: state, schemaVersion: 1)]))
        }
        switch said % 4 {
        case 0:
            return .fetch(
                Fetch(
                    request: said, from: SequenceNumber(1), limitBytes: 4 << 20, acknowledged: 0))
        case 1:
            return .question(
                Question(number: said, patience: .seconds(1), body: .status))
        default:
            var builder = BatchBuilder()
            for _ in 0..<10 {
                builder.append(
                    target: BatchTarget(
                        target: .state(state), schemaVersion: 1, coding: .compact),
                    payload: [UInt8](repeating: 0x78, count: 1_000))
            }
            return .submit(
                builder.finish(firstCounter: counter, settled: counter - 1))
        }
    }
}
