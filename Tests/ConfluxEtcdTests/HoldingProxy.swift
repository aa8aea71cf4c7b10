import Foundation
import Synchronization

/// Passes on what clients and a server say, and holds one request back until it is told to let it go: the client
/// has given up by then, and the server takes the request all the same.
final class HoldingProxy: Sendable {
    private let listener: Listener
    private let held: Held

    var address: String { listener.address }

    private final class Held: Sendable {
        /// What the request contains that is held next; nil for none.
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
                    // Settings, acknowledgements and pings have 40 bytes at most.
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
            // The end of the request may come by itself. What the client says when it gives up is not passed on.
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

    /// Holds the next request that has some words in it.
    func hold(_ words: String) { held.words.withLock { $0 = Array(words.utf8) } }

    /// Whether a request is held.
    var isHolding: Bool { held.words.withLock { $0 == nil } }

    /// Lets the held request go, and waits until the server answered it.
    func release() -> Bool {
        held.isReleased.signal()
        return held.isAnswered.wait(timeout: .now() + 10) == .success
    }
}
