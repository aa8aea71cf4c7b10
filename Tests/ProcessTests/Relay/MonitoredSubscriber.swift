import CZeroMQ
import Foundation
import Spawning

/// A SUB socket of libzmq that a test sees connecting and being disconnected. It connects again by itself.
// Sendable: only the queue uses the sockets.
final class MonitoredSubscriber: @unchecked Sendable {
    private let context: UnsafeMutableRawPointer
    private let socket: UnsafeMutableRawPointer
    private let monitor: UnsafeMutableRawPointer
    private let queue = DispatchQueue(label: "conflux.tests.subscriber")

    /// - Parameters:
    ///   - address: Where it connects.
    ///   - prefixes: What it subscribes to.
    /// - Throws: ``Failure`` if there is no socket.
    init(_ address: String, to prefixes: [String] = [""]) throws {
        guard let context = zmq_ctx_new(), let socket = zmq_socket(context, ZMQ_SUB),
            let monitor = zmq_socket(context, ZMQ_PAIR)
        else { throw Failure("no ZeroMQ socket") }
        (self.context, self.socket, self.monitor) = (context, socket, monitor)
        for (socket, option, value) in [
            (socket, ZMQ_LINGER, 0), (socket, ZMQ_RECONNECT_IVL, 20), (socket, ZMQ_RCVHWM, 1),
            (socket, ZMQ_RCVBUF, 4_096), (monitor, ZMQ_LINGER, 0), (monitor, ZMQ_RCVTIMEO, 20_000),
        ] as [(UnsafeMutableRawPointer, Int32, Int32)] {
            var value = value
            zmq_setsockopt(socket, option, &value, MemoryLayout<Int32>.size)
        }
        for prefix in prefixes { zmq_setsockopt(socket, ZMQ_SUBSCRIBE, prefix, prefix.utf8.count) }
        let events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED
        guard zmq_socket_monitor(socket, "inproc://monitor", events) == 0,
            zmq_connect(monitor, "inproc://monitor") == 0, zmq_connect(socket, address) == 0
        else { throw Failure("can't connect to \(address)") }
    }

    deinit {
        zmq_close(monitor)
        zmq_close(socket)
        zmq_ctx_term(context)
    }

    /// Waits for the next event, which must be this one.
    func next(_ event: Int32) async throws {
        let found = await withCheckedContinuation { continuation in
            queue.async { [self] in
                var report = [UInt8](repeating: 0, count: 6)
                var address = [UInt8](repeating: 0, count: 256)
                let count = zmq_recv(monitor, &report, report.count, 0)
                if count > 0 { zmq_recv(monitor, &address, address.count, 0) }
                continuation.resume(
                    returning: count > 0 ? Int32(report[0]) | Int32(report[1]) << 8 : 0)
            }
        }
        guard found == event else { throw Failure("event \(found) instead of \(event)") }
    }
}

/// Whether anything listens at a port of this machine.
func canConnect(to address: String) -> Bool {
    let descriptor = tcpSocket()
    defer { close(descriptor) }
    guard let port = address.split(separator: ":").last.flatMap({ UInt16($0) }) else {
        return false
    }
    var place = loopback(port)
    return withUnsafePointer(to: &place) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
}
