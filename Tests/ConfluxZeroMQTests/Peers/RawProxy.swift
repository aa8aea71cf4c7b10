import CZeroMQ
import ConfluxZeroMQ
import Testing

/// `zmq_proxy` between a publisher and subscribers, on a thread of its own.
final class RawProxy {
    // libzmq's contexts may be used on any thread. The proxy's thread owns the sockets while it runs.
    private nonisolated(unsafe) let context = zmq_ctx_new()
    private let captured: UnsafeMutableRawPointer?
    private let thread: NamedThread
    /// Where subscribers connect.
    let endpoint: Endpoint

    init(to publisher: Endpoint) throws {
        nonisolated(unsafe) let front = zmq_socket(context, ZMQ_XSUB)
        nonisolated(unsafe) let back = zmq_socket(context, ZMQ_XPUB)
        nonisolated(unsafe) let capture = zmq_socket(context, ZMQ_PAIR)
        captured = zmq_socket(context, ZMQ_PAIR)
        for socket in [front, back, capture, captured] {
            var none: Int32 = 0
            zmq_setsockopt(socket, ZMQ_LINGER, &none, MemoryLayout<Int32>.size)
        }
        try #require(zmq_connect(front, publisher.description) == 0)
        try #require(zmq_bind(back, "tcp://127.0.0.1:*") == 0)
        try #require(zmq_bind(capture, "inproc://captured") == 0)
        try #require(zmq_connect(captured, "inproc://captured") == 0)
        var text = [CChar](repeating: 0, count: 256)
        var count = text.count
        try #require(zmq_getsockopt(back, ZMQ_LAST_ENDPOINT, &text, &count) == 0)
        let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        endpoint = try Endpoint(String(decoding: bytes, as: UTF8.self))
        thread = try NamedThread("proxy") {
            zmq_proxy(front, back, capture)
            for socket in [front, back, capture] { zmq_close(socket) }
        }
    }

    deinit {
        zmq_close(captured)
        zmq_ctx_shutdown(context)
        thread.join()
        zmq_ctx_term(context)
    }

    /// Waits until a message has passed in either direction.
    func awaitPassage(of message: [UInt8]) throws {
        let end = ContinuousClock.now + deadline
        while ContinuousClock.now < end {
            guard let frames = RawSocket.receive(from: captured) else {
                RawSocket.awaitInput(of: captured)
                continue
            }
            if frames == [message] { return }
        }
        throw Overdue()
    }
}
