#if os(Linux)
    import CZeroMQ
    import Conflux
    import Foundation
    import Spawning
    import Testing

    extension ProcessTests {
        /// What another address brings at once may be of a history that is over (rule 4).
        struct StrangeFeedTests {
            @Test func `what another feed brings counts only after another welcome (rule 4)`()
                async throws
            {
                try await withSite { site in
                    let sequencer = try await site.sequencer()
                    let requests = try Proxy(before: sequencer.address)
                    let feed = try Proxy(before: sequencer.feed)
                    let fake = "ipc://\(site.path("fake"))"
                    let worker = try await site.worker(
                        "alpha", of: sequencer, stores: ["counter"], at: requests.address,
                        options: ["--feed", fake])
                    _ = try await site.event("feedFellBack", of: worker.child)
                    let forged = try await forgedIncrement(site, sequencer)
                    try await site.counter(1, in: worker, of: sequencer)
                    // It accepts no other connection, so the node hears of it once.
                    let listener = try PathListener(at: site.path("fake"))
                    // No welcome comes from a sequencer that is stopped.
                    sequencer.child.signal(SIGSTOP)
                    feed.close()
                    let connection = try await onThread { try listener.publish(forged) }
                    let event = try await site.event("feedRestored", of: worker.child)
                    #expect(event[key: "to"]?.string == fake)
                    sequencer.child.signal(SIGCONT)
                    listener.end(connection)
                    let again = try Proxy(before: sequencer.feed)
                    _ = try await site.dispatch("decrement", to: "counter", at: sequencer.address)
                    try await site.counter(0, in: worker, of: sequencer)
                    again.close()
                    requests.close()
                }
            }

            /// Increments the counter.
            ///
            /// - Returns: The message of the feed, with the number of the next entry.
            private func forgedIncrement(
                _ site: Site, _ sequencer: RunningSequencer
            ) async throws -> [UInt8] {
                let subscriber = try LibraryPeer(ZMQ_SUB, sequencer.feed, topics: [""])
                // It is subscribed.
                _ = try await subscriber.receive()
                let sequence = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address)
                while true {
                    var frame = try #require(try await subscriber.receive().first)
                    // After the header come the log, two epochs, the first number, the time and the count.
                    let place = 24 + 16 + 8 + 8
                    guard frame[5] == 0x81,
                        UInt64(frame[place]) + UInt64(frame[place + 16]) == sequence + 1
                    else { continue }
                    frame[place] = UInt8(sequence) + 1
                    return frame
                }
            }
        }
    }

    /// A feed at a path that brings one message, together with its side of the handshake.
    private final class PathListener: Sendable {
        private let descriptor: Int32

        init(at path: String) throws {
            descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var place = sockaddr_un()
            place.sun_family = sa_family_t(AF_UNIX)
            let isBound = withUnsafeMutableBytes(of: &place.sun_path) { target in
                path.utf8.count < target.count
                    && path.withCString { source in
                        target.baseAddress?.copyMemory(from: source, byteCount: path.utf8.count + 1)
                        return true
                    }
            }
            let isListening = withUnsafePointer(to: &place) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
                        && listen(descriptor, 1) == 0
                }
            }
            guard isBound, isListening else { throw Failure("no listener: \(systemError())") }
        }

        /// Waits for a connection, and sends everything at once.
        ///
        /// - Returns: The connection.
        func publish(_ message: [UInt8]) throws -> Int32 {
            var limit = timeval(tv_sec: 60, tv_usec: 0)
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit,
                socklen_t(MemoryLayout<timeval>.size))
            let connection = accept(descriptor, nil, nil)
            guard connection >= 0, message.count < 256 else {
                throw Failure("no connection: \(systemError())")
            }
            let bytes =
                RawConnection.greeting + RawConnection.ready(as: "PUB")
                + [0, UInt8(message.count)] + message
            guard write(connection, bytes, bytes.count) == bytes.count else {
                throw Failure("can't send: \(systemError())")
            }
            return connection
        }

        /// Ends a connection, and takes no other.
        func end(_ connection: Int32) {
            close(connection)
            close(descriptor)
        }
    }
#endif
