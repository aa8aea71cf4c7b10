import Foundation
import Spawning

/// The socket of a service manager: it receives what processes send, in order.
final class ManagerSocket: Sendable {
    /// The value of `NOTIFY_SOCKET`.
    let name: String
    private let descriptor: Int32
    private let queue = DispatchQueue(label: "manager-socket")

    /// - Parameter name: An absolute path, or `@` and a name.
    /// - Throws: ``Failure`` if it can't be bound.
    init(_ name: String) throws {
        self.name = name
        #if canImport(Darwin)
            descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
        #else
            descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = name.hasPrefix("@") ? [0] + name.utf8.dropFirst() : Array(name.utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let size = MemoryLayout.offset(of: \sockaddr_un.sun_path).map { $0 + bytes.count } ?? 0
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(size))
            }
        }
        guard bound == 0 else { throw Failure("can't bind \(name): \(systemError())") }
    }

    deinit { close(descriptor) }

    /// Waits for the next message.
    ///
    /// - Returns: The message, or nil if none arrived in time.
    func next(within limit: Duration = .seconds(60)) async -> String? {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                guard poll(&waited, 1, Int32(limit / .milliseconds(1))) > 0 else {
                    return continuation.resume(returning: nil)
                }
                var buffer = [UInt8](repeating: 0, count: 4_096)
                let count = recv(descriptor, &buffer, buffer.count, 0)
                continuation.resume(
                    returning: String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self))
            }
        }
    }
}
