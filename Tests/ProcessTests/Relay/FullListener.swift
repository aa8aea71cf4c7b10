import Foundation
import Spawning

/// An address at which a connection is neither accepted nor refused, like that of a machine that is gone: its queue of
/// connections is full.
final class FullListener {
    let address: String
    private var descriptors: [Int32] = []

    init() throws {
        let listener = tcpSocket()
        descriptors.append(listener)
        var place = loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 0) == 0
                    && getsockname(listener, $0, &size) == 0
            }
        }
        guard bound else { throw Failure("can't listen: \(systemError())") }
        address = "tcp://127.0.0.1:\(UInt16(bigEndian: place.sin_port))"
        for _ in 0..<4 {
            let descriptor = tcpSocket()
            descriptors.append(descriptor)
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            withUnsafePointer(to: &place) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    // Those that find no place wait without end.
                    _ = connect(descriptor, $0, size)
                }
            }
        }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
}
