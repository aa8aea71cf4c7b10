import Foundation

/// A TCP connection that sends what it is told, byte by byte.
final class ByteConnection {
    private let descriptor: Int32

    /// Connects to `tcp://127.0.0.1:port`.
    init(to address: String) throws {
        guard let port = address.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw BenchError("no port: \(address)")
        }
        #if canImport(Darwin)
            descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_port = port.bigEndian
        place.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let failure = withUnsafePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard descriptor >= 0, failure == 0 else { throw BenchError("can't connect to \(address)") }
    }

    deinit { close(descriptor) }

    /// - Returns: Whether the connection is still alive.
    func send(_ byte: UInt8) -> Bool {
        var byte = byte
        return write(descriptor, &byte, 1) == 1
    }
}
