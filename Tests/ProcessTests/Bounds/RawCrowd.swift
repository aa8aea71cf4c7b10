import CZeroMQ
import ConfluxProtocol
import ConfluxVocabulary
import Foundation

/// Many nodes in one context, that join and leave at once.
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

    /// All join; then they leave, with a bye or in silence.
    func comeAndGo(at address: String, saysBye: Bool) throws {
        for socket in sockets {
            guard zmq_connect(socket, address) == 0 else { throw Failure(systemError()) }
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

    private func send(_ frame: [UInt8], by socket: UnsafeMutableRawPointer) {
        zmq_send(socket, frame, frame.count, 0)
    }
}
