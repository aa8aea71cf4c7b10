import CZeroMQ
import ConfluxProtocol
import Foundation
import Spawning
import Synchronization

/// Stands between one node and its sequencer, so that the node seems to lie: it votes as it should, and what it sends
/// of its state is changed or lost on the way.
///
/// The sockets belong to the thread that makes them, and then to the thread of `run`, which begins later.
final class LyingRelay: @unchecked Sendable {
    /// What becomes of a part of the node's state.
    enum Lie: Sendable, CaseIterable {
        case otherBytes, nothing
    }

    /// What the node connects to.
    let address: String
    private let lie: Lie
    private let isOver = Atomic<Bool>(false)
    private let context: UnsafeMutableRawPointer
    private let node: UnsafeMutableRawPointer
    private let sequencer: UnsafeMutableRawPointer

    /// Makes a relay to a sequencer without keys.
    init(to place: String, _ lie: Lie) throws {
        guard let context = zmq_ctx_new(), let node = zmq_socket(context, ZMQ_ROUTER),
            let sequencer = zmq_socket(context, ZMQ_DEALER)
        else { throw Failure("no ZeroMQ sockets: \(systemError())") }
        (self.context, self.node, self.sequencer, self.lie) = (context, node, sequencer, lie)
        for socket in [node, sequencer] {
            var milliseconds: Int32 = 0
            zmq_setsockopt(socket, ZMQ_LINGER, &milliseconds, MemoryLayout<Int32>.size)
        }
        var text = [CChar](repeating: 0, count: 256)
        var count = text.count
        guard zmq_bind(node, "tcp://127.0.0.1:*") == 0,
            zmq_getsockopt(node, ZMQ_LAST_ENDPOINT, &text, &count) == 0,
            zmq_connect(sequencer, place) == 0
        else { throw Failure("can't relay to \(place): \(systemError())") }
        address = String(decoding: text.prefix(count - 1).map(UInt8.init), as: UTF8.self)
    }

    deinit {
        zmq_close(node)
        zmq_close(sequencer)
        zmq_ctx_term(context)
    }

    /// Ends the relay soon.
    func stop() { isOver.store(true, ordering: .relaxed) }

    /// Relays on the calling thread, until it is stopped.
    func run() throws {
        var name: [UInt8] = []
        while !isOver.load(ordering: .relaxed) {
            var items = [node, sequencer].map {
                zmq_pollitem_t(socket: $0, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0)
            }
            guard zmq_poll(&items, 2, 100) >= 0 || errno == EINTR else {
                throw Failure("the relay can't wait: \(systemError())")
            }
            if items[0].revents != 0 {
                name = try Self.receive(node)
                if let frame = try relayed(Self.receive(node)) { try Self.send(frame, sequencer) }
            }
            if items[1].revents != 0 {
                let frame = try Self.receive(sequencer)
                try Self.send(name, node, ZMQ_SNDMORE)
                try Self.send(frame, node)
            }
        }
    }

    /// - Returns: What the sequencer gets in the place of a node's frame; nil for nothing.
    private func relayed(_ frame: [UInt8]) throws -> [UInt8]? {
        let header = try Frame.header(of: frame[...])
        guard header.kind == .snapshot else { return frame }
        guard lie == .otherBytes,
            case .snapshot(var chunk) = try Frame.decodeNodeMessage(frame[...])
        else { return nil }
        var bytes = Array(chunk.bytes)
        for index in bytes.indices { bytes[index] ^= 1 }
        chunk.bytes = bytes[...]
        return Frame.encode(.snapshot(chunk), by: header.speaker)
    }

    private static func receive(_ socket: UnsafeMutableRawPointer) throws -> [UInt8] {
        var message = zmq_msg_t()
        zmq_msg_init(&message)
        defer { zmq_msg_close(&message) }
        guard zmq_msg_recv(&message, socket, 0) >= 0 else {
            throw Failure("the relay can't receive: \(systemError())")
        }
        return Array(
            UnsafeRawBufferPointer(start: zmq_msg_data(&message), count: zmq_msg_size(&message)))
    }

    private static func send(
        _ bytes: [UInt8], _ socket: UnsafeMutableRawPointer, _ flags: Int32 = 0
    ) throws {
        guard zmq_send(socket, bytes, bytes.count, flags) >= 0 else {
            throw Failure("the relay can't send: \(systemError())")
        }
    }
}
