import CZeroMQ
import ConfluxProtocol
import ConfluxVocabulary
import Foundation
import Spawning

/// Many nodes in one ZeroMQ context. One thread uses it, and may block in it.
final class RawCrowd {
    private let context: UnsafeMutableRawPointer
    private var sockets: [UnsafeMutableRawPointer] = []

    init(_ count: Int) throws {
        guard let context = zmq_ctx_new() else { throw Failure("no context: \(systemError())") }
        self.context = context
        for _ in 0..<count {
            guard let socket = zmq_socket(context, ZMQ_DEALER) else {
                throw Failure("no socket: \(systemError())")
            }
            for (option, value) in [(ZMQ_LINGER, Int32(1_000)), (ZMQ_RCVTIMEO, 20_000)] {
                var value = value
                zmq_setsockopt(socket, option, &value, MemoryLayout<Int32>.size)
            }
            sockets.append(socket)
        }
    }

    deinit {
        for socket in sockets { zmq_close(socket) }
        zmq_ctx_term(context)
    }

    /// All nodes join. Then they leave, with a bye or in silence.
    func comeAndGo(at address: String, saysBye: Bool) throws {
        for socket in sockets {
            try connect(socket, to: address)
            let hello = Hello(request: 1, nonce: .random(), name: nil, role: .member)
            send(Frame.encode(.hello(hello), by: .unwelcomed), by: socket)
        }
        for socket in sockets {
            var answer = [UInt8](repeating: 0, count: 1_024)
            let count = zmq_recv(socket, &answer, answer.count, 0)
            guard count > 0, count <= answer.count,
                case .welcome(let welcome) = try Frame.decodeSequencerMessage(answer[..<Int(count)])
            else { throw Failure("no welcome: \(systemError())") }
            guard saysBye else { continue }
            let speaker = Speaker(
                epoch: try Frame.header(of: answer[..<Int(count)]).epoch,
                session: welcome.incarnation)
            let bye = NodeMessage.bye(Bye(code: .leaving, message: ""))
            send(Frame.encode(bye, by: speaker), by: socket)
        }
    }

    private func connect(_ socket: UnsafeMutableRawPointer, to address: String) throws {
        guard zmq_connect(socket, address) == 0 else { throw Failure(systemError()) }
    }

    // MARK: Single nodes

    func connect(to address: String) throws {
        for socket in sockets { try connect(socket, to: address) }
    }

    /// Sends a frame as one of the nodes.
    func send(_ frame: [UInt8], by index: Int) {
        send(frame, by: sockets[index])
    }

    /// Waits until some messages have arrived, or until the time is up.
    ///
    /// - Returns: The messages that arrived, at most one for each node.
    func hear(within limit: Duration) throws -> [(index: Int, frame: [UInt8])] {
        var items = sockets.map {
            zmq_pollitem_t(socket: $0, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0)
        }
        let count = zmq_poll(&items, Int32(items.count), Int(limit / .milliseconds(1)))
        guard count >= 0 || errno == EINTR else { throw Failure(systemError()) }
        return items.indices.filter { items[$0].revents != 0 }.compactMap { index in
            var message = zmq_msg_t()
            zmq_msg_init(&message)
            defer { zmq_msg_close(&message) }
            guard zmq_msg_recv(&message, sockets[index], ZMQ_DONTWAIT) >= 0 else { return nil }
            let bytes = UnsafeRawBufferPointer(
                start: zmq_msg_data(&message), count: zmq_msg_size(&message))
            return (index, Array(bytes))
        }
    }

    private func send(_ frame: [UInt8], by socket: UnsafeMutableRawPointer) {
        zmq_send(socket, frame, frame.count, 0)
    }
}
