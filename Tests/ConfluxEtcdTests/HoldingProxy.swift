import Foundation
import Synchronization

/// Passes on what clients and a server send, but holds one request back until it is told to release it. By then the
/// client has given up, but the server takes the request all the same.
final class HoldingProxy: Sendable {
    private let listener: Listener
    private let held: Held

    var address: String { listener.address }

    private final class Held: Sendable {
        /// The words in the next request to hold; nil if none is to be held.
        let words = Mutex<[UInt8]?>(nil)
        let isReleased = DispatchSemaphore(value: 0)
        let isAnswered = DispatchSemaphore(value: 0)

        func takes(_ bytes: ArraySlice<UInt8>) -> Bool {
            words.withLock { words in
                guard let some = words, Data(bytes).firstRange(of: Data(some)) != nil else {
                    return false
                }
                words = nil
                return true
            }
        }
    }

    init(before server: String) throws {
        let port = UInt16(server.split(separator: ":").last ?? "") ?? 0
        let held = Held()
        self.held = held
        listener = try Listener { client in
            guard let server = connected(to: port) else {
                close(client)
                return
            }
            let isLate = Flag()
            let down = Thread {
                relay(server, to: client) { count in
                    // Settings, acknowledgements and pings have at most 40 bytes.
                    if isLate.value.withLock({ $0 }), count > 40 { held.isAnswered.signal() }
                    return true
                }
            }
            down.start()
            Self.relayUp(client, to: server, held, isLate)
        }
    }

    private final class Flag: Sendable {
        let value = Mutex(false)
    }

    private static func relayUp(
        _ client: Int32, to server: Int32, _ held: Held, _ isLate: Flag
    ) {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            var count = recv(client, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            guard held.takes(buffer[..<count]) else {
                guard sendAll(buffer[..<count], to: server) else { break }
                continue
            }
            // The request's end may arrive separately. What the client sends when it gives up is not passed on.
            var source = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
            while count < buffer.count, poll(&source, 1, 200) > 0 {
                let more = recv(client, &buffer[count], buffer.count - count, 0)
                guard more > 0 else { break }
                count += more
            }
            held.isReleased.wait()
            isLate.value.withLock { $0 = true }
            _ = sendAll(buffer[..<count], to: server)
            return
        }
        shutdown(client, Int32(SHUT_RDWR))
        shutdown(server, Int32(SHUT_RDWR))
    }

    /// Holds the next request that contains these words.
    func hold(_ words: String) { held.words.withLock { $0 = Array(words.utf8) } }

    /// Whether a request is held.
    var isHolding: Bool { held.words.withLock { $0 == nil } }

    /// Releases the held request, and waits until the server has answered it.
    func release() -> Bool {
        held.isReleased.signal()
        return held.isAnswered.wait(timeout: .now() + 10) == .success
    }
}
