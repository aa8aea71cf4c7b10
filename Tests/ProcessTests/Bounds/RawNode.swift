import CZeroMQ
import ConfluxProtocol
import ConfluxVocabulary
import Foundation
import Spawning

/// A node that sends exactly what a test wants, in valid frames, and keeps no other rule.
///
/// One thread uses it, and may block in it.
final class RawNode {
    let peer: RawPeer
    private(set) var welcome: Welcome
    private let speaker: Speaker
    private var hello: Hello
    private var nextCounter: UInt64 = 1
    /// The counter up to which its actions have receipts.
    private(set) var settled: UInt64 = 0

    /// A state that no worker hosts: its actions cost nobody but the sequencer.
    static let state = Name("load")!

    /// Connects, says hello and waits for the welcome.
    init(
        at address: String, role: Hello.Role = .member, name: String? = nil,
        receivesAtMost: Int32 = 1_000
    ) throws {
        peer = try RawPeer(ZMQ_DEALER, receivesAtMost: receivesAtMost)
        try peer.connect(address)
        hello = Hello(
            request: 1, nonce: .random(), name: name.flatMap { Name($0) }, role: role,
            bridged: role == .member ? [StateBridge(state: Self.state, schemaVersion: 1)] : [])
        peer.send(Frame.encode(.hello(hello), by: .unwelcomed))
        guard let frame = peer.receive()?.first else {
            throw NoAnswer(description: "no answer to a hello at \(address) within five seconds")
        }
        let answer = try Frame.decodeSequencerMessage(frame[...])
        guard case .welcome(let welcome) = answer else {
            throw NoWelcome(description: "no welcome at \(address): \(answer)")
        }
        self.welcome = welcome
        speaker = Speaker(
            epoch: try Frame.header(of: frame[...]).epoch, session: welcome.incarnation)
    }

    /// - Returns: Whether the message was sent within five seconds.
    @discardableResult
    func say(_ message: NodeMessage) -> Bool {
        peer.send(Frame.encode(message, by: speaker))
    }

    /// Says hello once more, in the same session.
    func greet() {
        hello.request += 1
        say(.hello(hello))
    }

    /// - Returns: The next message, or nil if none arrived within five seconds.
    func hear() throws -> SequencerMessage? {
        try peer.receive()?.first.map { try Frame.decodeSequencerMessage($0[...]) }
    }

    // MARK: Submitting

    /// Makes the frame of a batch of one action, whose counter is 1.
    func submission(payloadBytes: Int) -> [UInt8] {
        var builder = BatchBuilder()
        var payload = [UInt8](repeating: UInt8(ascii: "x"), count: payloadBytes)
        payload[0] = UInt8(ascii: "\"")
        payload[payloadBytes - 1] = payload[0]
        builder.append(
            target: BatchTarget(target: .state(Self.state), schemaVersion: 1, coding: .json),
            payload: payload)
        return Frame.encode(
            .submit(builder.finish(firstCounter: 1, settled: 0)), by: speaker)
    }

    /// Writes the next counter into a submission. This is faster than making a new one.
    private func stamp(_ frame: inout [UInt8]) {
        // The counters come after the header and the length of the batch.
        for (place, value) in [(Frame.size + 4, nextCounter), (Frame.size + 12, settled)] {
            for byte in 0..<8 {
                frame[place + byte] = UInt8(truncatingIfNeeded: value >> (8 * UInt64(byte)))
            }
        }
        nextCounter += 1
    }

    /// Submits actions within the window, until all of them have receipts.
    func load(_ count: Int, payloadBytes: Int) throws {
        let window = max(1, Int(welcome.limits.windowBytes) / (payloadBytes + 1_024))
        let last = settled + UInt64(count)
        var frame = submission(payloadBytes: payloadBytes)
        while settled < last {
            while nextCounter <= last, nextCounter - settled <= window {
                stamp(&frame)
                guard peer.send(frame) else { throw Failure("the sequencer does not read") }
            }
            switch try hear() {
            case .receipts(let receipts):
                for run in receipts.runs { settled = run.firstCounter + UInt64(run.count) - 1 }
            case .none: throw Failure("no outcome of \(settled + 1) within five seconds")
            case .some(let other): throw Failure("no receipt: \(other)")
            }
        }
    }
}

/// The error when no answer to a hello arrived in time.
struct NoAnswer: Error, CustomStringConvertible {
    let description: String
}

/// The error when the answer to a hello is not a welcome.
struct NoWelcome: Error, CustomStringConvertible {
    let description: String
}
