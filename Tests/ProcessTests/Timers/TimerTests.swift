import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Timers of a log, set by the command line, while processes come and go.
    struct TimerTests {
        /// The entries of a log that timers dispatched, by the timer's number. It waits until there are so many.
        private func firings(
            _ count: Int, _ site: Site, _ sequencer: RunningSequencer
        ) async throws -> [UInt64] {
            let child = try site.start(
                ["log", "--from", "1", "--follow", "--json", "--connect", sequencer.address])
            var numbers: [UInt64] = []
            _ = try await child.output.first { line in
                if let number = try object(line)[key: "timer"]?.number { numbers.append(number) }
                return numbers.count >= count
            }
            child.signal(SIGINT)
            #expect(try await child.end() == .exited(0))
            return numbers
        }

        /// All of those that there are.
        private func firings(_ site: Site, _ sequencer: RunningSequencer) async throws -> [UInt64] {
            let log = try await site.run(
                "log", "--from", "1", "--json", "--connect", sequencer.address)
            return try log.output.compactMap { try object($0)[key: "timer"]?.number }
        }

        private func killed(
            _ sequencer: RunningSequencer, _ site: Site
        ) async throws -> RunningSequencer {
            sequencer.child.signal(SIGKILL)
            #expect(try await sequencer.child.end() == .killed(SIGKILL))
            return try await site.sequencer(data: "log", at: sequencer)
        }

        @Test func `timers fire once, though the sequencer is killed before and after`()
            async throws
        {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                var timers: [UInt64] = []
                // One is due while no sequencer runs, and one after the first restart.
                for delay in ["100ms", "3s"] {
                    timers.append(
                        try await site.dispatch(
                            "increment", to: "counter", at: sequencer.address, "--after", delay))
                }
                sequencer = try await killed(sequencer, site)
                #expect(Set(try await firings(2, site, sequencer)) == Set(timers))
                // Now that they have fired, they do not fire again.
                sequencer = try await killed(sequencer, site)
                let last = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address, "--after", "200ms")
                #expect(try await firings(3, site, sequencer).sorted() == timers + [last])
                let sightings = try await site.sightings(
                    of: "counter", at: sequencer.address, in: ["alpha"], from: last + 1)
                #expect(sightings.map(\.state) == [#"{"count":3}"#])
                #expect(
                    try await site.run("timers", "--connect", sequencer.address).output
                        == ["no timers"])
            }
        }

        @Test func `a list, a cancellation and a repeating timer outlive the sequencer`()
            async throws
        {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                let tick = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address, "--after", "0s", "--every",
                    "50ms", "--key", "tick")
                let never = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address, "--at",
                    "2200-01-01T00:00:00Z", "--key", "never")
                _ = try await firings(3, site, sequencer)
                sequencer = try await killed(sequencer, site)
                let list = try await site.run(
                    "timers", "counter", "--json", "--connect", sequencer.address)
                let timers = try list.output.map { try object($0) }
                // The firing of the one that repeats may be under way, and then it is not listed.
                #expect(timers.last?[key: "timer"]?.number == never)
                #expect(timers.count <= 2)
                let before = try await firings(site, sequencer).count
                let after = try await firings(before + 3, site, sequencer)
                #expect(Set(after) == [tick])

                for key in ["tick", "never"] {
                    let cancelled = try await site.run(
                        "timers", "counter", "--cancel", key, "--connect", sequencer.address)
                    #expect(cancelled.end == .exited(0), "\(cancelled.message)")
                }
                sequencer = try await killed(sequencer, site)
                let again = try await site.run(
                    "timers", "counter", "--cancel", "tick", "--connect", sequencer.address)
                #expect(again.end == .exited(80))
                #expect(again.message.contains(#"has the key "tick""#), "\(again.message)")
                let count = try await firings(site, sequencer).count
                _ = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address, "--after", "200ms")
                #expect(try await firings(count + 1, site, sequencer).count == count + 1)
                // What the log says is what its files hold, and what a replay finds.
                sequencer.child.signal(SIGTERM)
                #expect(try await sequencer.child.end() == .exited(0))
                let verified = try await site.run("log", "--verify", site.path("log"))
                #expect(verified.end == .exited(0), "\(verified.message)")
            }
        }
    }
}
