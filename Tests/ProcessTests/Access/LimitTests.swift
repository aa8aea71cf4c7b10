import Foundation
import Testing

extension ProcessTests {
    /// What keys are limited to, and what those without a key can't take from them.
    struct LimitTests {
        /// How many connections that say nothing there are at a time, with each socket.
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
                // Who was there before was not disturbed.
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

        @Test func `above a key's sessions a process is denied and told what to do`()
            async throws
        {
            try await withSite { site in
                let keyed = try await KeyedSite(
                    site, ["small": "all sessions-max=1", "other": "all"])
                let worker = try await site.worker(
                    "w1", of: keyed.sequencer, stores: ["counter"], options: keyed.options("small"))
                // A stream joins; who dispatches one action visits, and needs no session.
                let lines = try site.write(#"{"increment":{}}"# + "\n", to: "lines")
                let stream = ["dispatch", "counter/*", "--file", lines]
                let denied = try await keyed.run("small", stream)
                #expect(denied.end != .exited(0))
                for words in ["the key small has 1 sessions", "sessions-max", "authorised keys"] {
                    #expect(denied.message.contains(words), "\(denied)")
                }
                let visit = try await keyed.run(
                    "small", ["dispatch", "counter/*", #"{"increment":{}}"#])
                #expect(visit.end == .exited(0), "\(visit)")
                let other = try await keyed.run("other", stream)
                #expect(other.end == .exited(0), "\(other)")
                // Where it ends another one has its place.
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
