#if os(Linux)
    import Conflux
    import Foundation
    import Spawning
    import Testing

    extension ProcessTests {
        /// One of the two addresses of a sequencer can't be reached: that for requests, or that of its feed. A node that
        /// connects through a proxy on another host reaches the feed on that host, too, where each test puts what it
        /// needs.
        struct FeedFaultTests {
            enum Fault: String, CaseIterable, Sendable {
                case refused, silent, full, another, closing, unresolvable

                var words: String {
                    switch self {
                    case .refused: "Nothing listens"
                    case .silent: "does not answer"
                    case .full: "can't be reached"
                    case .another, .closing: "is not the feed"
                    case .unresolvable: "has no address"
                    }
                }
            }

            /// Runs a body with the address of a sequencer whose feed has a fault, and with the feed's address.
            private func with(
                _ fault: Fault,
                _ body: (Site, _ address: String, _ feed: String) async throws -> Void
            ) async throws {
                try await withSite { site in
                    if fault == .unresolvable { return try await withUnresolvable(site, body) }
                    let sequencer = try await site.sequencer()
                    let requests = try Proxy(before: sequencer.address)
                    defer { requests.close() }
                    let feed = try #require(sequencer.feed.split(separator: ":").last)
                    let port = try #require(UInt16(feed))
                    let address = "tcp://\(Proxy.host):\(port)"
                    switch fault {
                    case .refused: try await body(site, requests.address, address)
                    case .silent, .full:
                        let listener = try Listener(Proxy.host, port, isFull: fault == .full)
                        try await body(site, requests.address, address)
                        withExtendedLifetime(listener) {}
                    case .another, .closing:
                        let other = fault == .another ? try await site.sequencer().feed : nil
                        let proxy = try Proxy(
                            before: sequencer.feed, to: other,
                            // Enough for the handshake, and not for a beat.
                            cuttingAfter: fault == .closing ? 128 : nil)
                        defer { proxy.close() }
                        try await body(site, requests.address, address)
                    case .unresolvable: break
                    }
                }
            }

            /// Runs a body with a sequencer that announces a feed whose name has no address.
            private func withUnresolvable(
                _ site: Site,
                _ body: (Site, _ address: String, _ feed: String) async throws -> Void
            ) async throws {
                // A feed on a host of its own is announced with that host.
                let sequencer = try await site.sequencer("--feed", "tcp://127.0.0.3:0")
                let (scheme, rest) = ("tcp://", ".invalid:1")
                let name = String(
                    repeating: "x", count: sequencer.feed.count - scheme.count - rest.count)
                let feed = scheme + name + rest
                let requests = try Proxy(
                    before: sequencer.address, replacing: (sequencer.feed, feed))
                defer { requests.close() }
                try await body(site, requests.address, feed)
            }

            @Test(arguments: Fault.allCases)
            func `a worker that can't follow the feed says why at its timeout, and not before`(
                fault: Fault
            ) async throws {
                try await with(fault) { site, address, feed in
                    let begun = ContinuousClock.now
                    let outcome = try await site.run(
                        "worker", "--connect", address, "--store", "counter", "--timeout", "3s",
                        within: .seconds(60))
                    let time = ContinuousClock.now - begun
                    #expect(time >= .seconds(3) && time < .seconds(8))
                    #expect(outcome.end == .exited(69), "\(outcome)")
                    #expect(outcome.message.contains(feed), "\(outcome)")
                    #expect(outcome.message.contains(fault.words), "\(outcome)")
                }
            }

            @Test(
                arguments: zip(
                    [["log"], ["log", "--follow"], ["log", "skip", "1"]],
                    [Fault.refused, .unresolvable, .refused]))
            func `a command that reads the log names the feed that it can't reach`(
                words: [String], fault: Fault
            ) async throws {
                try await with(fault) { site, address, feed in
                    let child = try site.start(
                        words + ["--connect", address, "--timeout", "2s"])
                    let outcome = try await Tool.outcome(of: child)
                    #expect(outcome.end == .exited(69), "\(outcome)")
                    #expect(outcome.message.contains(feed), "\(outcome)")
                    #expect(outcome.message.contains(fault.words), "\(outcome)")
                }
            }

            @Test func `top names the feed that it can't reach, and restores the terminal`()
                async throws
            {
                try await with(.refused) { _, address, feed in
                    let terminal = try Terminal(["top", "--connect", address, "--timeout", "2s"])
                    let (code, shown) = try terminal.end()
                    #expect(code == 69)
                    let parts = shown.split(separator: "\u{1B}[?1049l")
                    #expect(parts.count == 2, "\(shown.suffix(400))")
                    let message = parts.last ?? ""
                    #expect(message.contains(feed) && message.contains(Fault.refused.words))
                }
            }

            @Test(arguments: [["log"], ["observe", "counter"]])
            func `a command that follows notes an outage, and its end`(words: [String]) async throws
            {
                try await withSite { site in
                    let sequencer = try await site.sequencer()
                    _ = try await site.worker("alpha", of: sequencer)
                    let requests = try Proxy(before: sequencer.address)
                    let feed = try Proxy(before: sequencer.feed)
                    defer { feed.close() }
                    let child = try site.start(
                        words + ["--follow", "--json", "--connect", requests.address])
                    _ = try await child.output.line(0)
                    requests.close()
                    _ = try await child.errors.first { $0.contains("disconnected") }
                    _ = try await child.errors.first {
                        $0.contains(requests.address) && $0.contains("can't be reached")
                            || $0.contains("Nothing listens at \(requests.address)")
                    }
                    let again = try Proxy(before: sequencer.address)
                    defer { again.close() }
                    _ = try await child.errors.first { $0.contains("reconnected") }
                    child.signal(SIGINT)
                    let outcome = try await Tool.outcome(of: child)
                    #expect(outcome.end == .exited(0), "\(outcome.message)")
                    // Results stay results.
                    #expect(outcome.output.allSatisfy { !$0.contains("connected") })
                }
            }

            @Test func `a feed that encrypts with another key is named`() async throws {
                try await withSite { site in
                    let keyed = try await KeyedSite(site, ["alpha": "all"])
                    try await withSite { elsewhere in
                        let other = try await KeyedSite(elsewhere, ["alpha": "all"])
                        let requests = try Proxy(before: keyed.sequencer.address)
                        let feed = try Proxy(before: keyed.sequencer.feed, to: other.sequencer.feed)
                        defer {
                            requests.close()
                            feed.close()
                        }
                        let child = try site.start(
                            [
                                "worker", "--connect", requests.address, "--store", "counter",
                                "--timeout", "3s",
                            ] + keyed.options("alpha"))
                        let outcome = try await Tool.outcome(of: child)
                        #expect(outcome.end == .exited(69), "\(outcome)")
                        #expect(outcome.message.contains(feed.address), "\(outcome)")
                        #expect(outcome.message.contains("another key"), "\(outcome)")
                    }
                }
            }

            @Test(arguments: [true, false])
            func `a running worker names the address that fails, and does not flap`(
                isFeed: Bool
            ) async throws {
                try await withSite { site in
                    let sequencer = try await site.sequencer()
                    let requests = try Proxy(before: sequencer.address)
                    let feed = try Proxy(before: sequencer.feed)
                    let worker = try await site.worker(
                        "alpha", of: sequencer, stores: ["counter"], at: requests.address)
                    let (broken, other) = isFeed ? (feed, requests) : (requests, feed)
                    let mark = worker.child.output.count
                    broken.close()
                    let report = try await worker.child.output.first(from: mark) { line in
                        try object(line)[key: "event"] == "unreachable"
                    }
                    #expect(report.line.contains(broken.address), "\(report.line)")
                    let events = try worker.child.output.soFar[mark...].map {
                        try object($0)[key: "event"]?.string ?? ""
                    }
                    #expect(events == ["disconnected", "unreachable"])
                    let again = try Proxy(
                        before: isFeed ? sequencer.feed : sequencer.address)
                    _ = try await worker.child.output.first(from: mark + 2) { line in
                        try object(line)[key: "event"] == "reconnected"
                    }
                    again.close()
                    other.close()
                }
            }
        }
    }

    /// A port of a host of the loopback network at which connections stay without an answer.
    private final class Listener {
        private let descriptors: [Int32]

        /// - Parameters:
        ///   - host: The host.
        ///   - port: The port.
        ///   - isFull: Whether its backlog is full, so that the system drops further attempts to connect.
        /// - Throws: ``Failure`` if the port is taken.
        init(_ host: String, _ port: UInt16, isFull: Bool) throws {
            var place = sockaddr_in()
            place.sin_family = sa_family_t(AF_INET)
            place.sin_port = port.bigEndian
            inet_pton(AF_INET, host, &place.sin_addr)
            func call(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
                withUnsafePointer(to: &place) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
            }
            let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            let listener = socket(AF_INET, kind, 0)
            var isOn: Int32 = 1
            setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(4))
            var descriptors = [listener]
            guard call({ bind(listener, $0, $1) }) == 0, listen(listener, isFull ? 0 : 64) == 0
            else { throw Failure("no listener at \(host):\(port): \(systemError())") }
            for _ in 0..<(isFull ? 4 : 0) {
                let client = socket(AF_INET, kind | Int32(SOCK_NONBLOCK.rawValue), 0)
                _ = call { connect(client, $0, $1) }
                descriptors.append(client)
            }
            self.descriptors = descriptors
        }

        deinit { for descriptor in descriptors { close(descriptor) } }
    }
#endif
