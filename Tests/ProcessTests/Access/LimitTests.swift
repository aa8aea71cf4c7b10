import Foundation
import Testing

extension ProcessTests {
    /// The limits of a key, and that clients without a key can't use up what belongs to keys.
    struct LimitTests {
        /// How many silent connections are open at a time, for each socket.
        private static let floodCount = 2_000

        @Test
        func `a client with a key connects though thousands of others never identify themselves`()
            async throws
        {
            try await withSite { site in
                let keyed = try await KeyedSite(site, ["host": "all", "api": "dispatch observe"])
                let worker = try await site.worker(
                    "w1", of: keyed.sequencer, stores: ["counter"], options: keyed.options("host"))
                let flood = HalfOpenFlood()
                async let ended: Void = onThread {
                    try flood.run(
                        against: [keyed.sequencer.address, keyed.sequencer.feed],
                        count: Self.floodCount)
                }
                // If the body throws, this comes before the wait for the flood.
                defer { flood.stop() }
                for await _ in flood.begun {}
                for _ in 0..<3 {
                    let done = try await keyed.run(
                        "api", "dispatch", "counter/*", #"{"increment":{}}"#)
                    #expect(done.end == .exited(0), "\(done)")
                }
                let late = try await site.worker(
                    "w2", of: keyed.sequencer, stores: ["counter"], options: keyed.options("host"))
                flood.stop()
                try await ended
                // The processes that were connected before were not disturbed.
                for child in [worker.child, late.child, keyed.sequencer.child] {
                    #expect(child.isRunning, "\(child.report)")
                }
                #expect(
                    !worker.child.output.soFar.contains { $0.contains("reconnected") },
                    "\(worker.child.report)")
                #if os(Linux)
                    try site.expectMemory(of: keyed.sequencer, below: 256 << 20, "half-open")
                #endif
            }
        }

        #if os(Linux)
            @Test func `others are served while recorded HELLOs come from one address`()
                async throws
            {
                try await withSite { site in
                    let keyed = try await KeyedSite(
                        site, ["host": "all", "api": "dispatch observe"])
                    let address = keyed.sequencer.address
                    let worker = try await site.worker(
                        "w1", of: keyed.sequencer, stores: ["counter"],
                        options: keyed.options("host"))
                    let recorded = try await RecordedHello.record { address in
                        try site.start(["status", "--connect", address] + keyed.options("api"))
                    }
                    let stream = try site.start(
                        ["dispatch", "counter/*", "-", "--json", "--connect", address]
                            + keyed.options("api"), input: .pipe)
                    stream.feed([#"{"increment":{}}"#])
                    _ = try #require(try await stream.output.line(0))

                    let flood = HalfOpenFlood(from: "127.0.0.9") { _ in recorded }
                    async let ended: Void = onThread {
                        try flood.run(against: [address], count: 500)
                    }
                    defer { flood.stop() }
                    for await _ in flood.begun {}
                    let before = flood.count
                    for number in 1...5 {
                        stream.feed(repeatElement(#"{"increment":{}}"#, count: 400))
                        let done = try await keyed.run(
                            "api", "dispatch", "counter/*", #"{"increment":{}}"#)
                        #expect(done.end == .exited(0), "\(done)")
                        _ = try #require(try await stream.output.line(400 * number))
                    }
                    let late = try await site.worker(
                        "w2", of: keyed.sequencer, stores: ["counter"],
                        options: keyed.options("host"))
                    #expect(flood.count > before + 1_000, "the flood went on meanwhile")
                    flood.stop()
                    try await ended
                    print("floods: recorded HELLOs: \(flood.count)")
                    stream.endInput()
                    #expect(try await stream.end() == .exited(0), "\(stream.report)")
                    for child in [worker.child, late.child, keyed.sequencer.child] {
                        #expect(child.isRunning, "\(child.report)")
                        #expect(
                            !child.output.soFar.contains { $0.contains("disconnected") },
                            "\(child.report)")
                    }
                    try site.expectMemory(of: keyed.sequencer, below: 256 << 20, "HELLOs")
                }
            }
        #endif

        @Test func `above a key's sessions a process is denied and told what to do`()
            async throws
        {
            try await withSite { site in
                let keyed = try await KeyedSite(
                    site, ["small": "all sessions-max=1", "other": "all"])
                let worker = try await site.worker(
                    "w1", of: keyed.sequencer, stores: ["counter"], options: keyed.options("small"))
                let lines = try site.write(#"{"increment":{}}"# + "\n", to: "lines")
                let stream = ["dispatch", "counter/*", "--file", lines]
                let denied = try await keyed.run("small", stream)
                #expect(denied.end != .exited(0))
                for words in ["the key small has 1 sessions", "sessions-max", "authorised keys"] {
                    #expect(denied.message.contains(words), "\(denied)")
                }
                let other = try await keyed.run("other", stream)
                #expect(other.end == .exited(0), "\(other)")
                // Once the worker has ended, another client gets its session.
                worker.child.signal(SIGTERM)
                _ = try await worker.child.end()
                let later = try await keyed.run("small", stream)
                #expect(later.end == .exited(0), "\(later)")
            }
        }

        @Test func `above a key's connections a process is refused and told what to do`()
            async throws
        {
            try await withSite { site in
                let keyed = try await KeyedSite(
                    site, ["small": "all connections-max=1", "other": "all"])
                _ = try await site.worker(
                    "w1", of: keyed.sequencer, stores: ["counter"], options: keyed.options("small"))
                let refused = try await keyed.run("small", "status")
                #expect(refused.end == .exited(77), "\(refused)")
                #expect(refused.message.contains("connections-max"), "\(refused)")
                #expect(try await keyed.run("other", "status").end == .exited(0))
            }
        }
    }
}
