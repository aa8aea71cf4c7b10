import Conflux
import EtcdCluster
import Foundation
import Testing

extension ProcessTests {
    /// A log stays within its bound whatever is written to it, and whoever does not take part any more. With
    /// `CONFLUX_FULL_LOG`, the loads have their full size.
    @Suite(.serialized) struct BoundedLogTests {
        private static let isFullSize =
            ProcessInfo.processInfo.environment["CONFLUX_FULL_LOG"] != nil
        /// The bytes of an action. A debug build takes a second for a megabyte.
        private static let actionBytes = isFullSize ? 900_000 : 150_000

        /// The bound of logs that somebody leaves alone.
        private static let limitMiB = isFullSize ? 48 : 8

        /// Large actions, which leave one of them in the state.
        private static func lines(_ count: Int) -> [String] {
            (0..<count).map { index in
                let padding = String(repeating: "\(index % 10)", count: actionBytes)
                return #"{"set":{"at":"/large","value":"\#(padding)"}}"#
            }
        }

        @Test(
            .enabled(if: EtcdCluster.isInstalled),
            .timeLimit(.minutes(isFullSize ? 120 : 10)))
        func `large actions never fill an etcd, with default settings`() async throws {
            let quota = Self.isFullSize ? 2 << 30 : 12 << 20
            let count = Self.isFullSize ? 2_400 : 120
            var options = EtcdCluster.Options()
            options.memberCount = 1
            options.arguments = ["--quota-backend-bytes=\(quota)"]
            let cluster = try EtcdCluster(options)
            try await withSite { site in
                let sequencer = try await site.sequencer(
                    log: cluster.address("conflux"), "--log-limit", "\(quota)")
                _ = try await site.worker("alpha", of: sequencer, stores: ["document"])
                for part in stride(from: 0, to: count, by: 40) {
                    try await site.dispatch(
                        lines: Self.lines(min(40, count - part)), to: "document",
                        at: sequencer.address, "--timeout", "110s")
                }
                let floor = try await site.status(at: sequencer.address)[key: "floor"]?.number
                #expect(try #require(floor) > 1)
                #expect(try cluster.control(["alarm", "list"]).isEmpty)
            }
        }

        @Test(.timeLimit(.minutes(isFullSize ? 60 : 10)))
        func `a folder stays within its bound, with the largest actions`() async throws {
            let (keepMiB, limitMiB, count) = Self.isFullSize ? (16, 256, 2_400) : (1, 8, 60)
            try await withSite { site in
                let sequencer = try await site.sequencer(
                    data: "log", "--keep-bytes", "\(keepMiB)MiB", "--log-limit", "\(limitMiB)MiB")
                _ = try await site.worker("alpha", of: sequencer, stores: ["document"])
                var most = 0
                for part in stride(from: 0, to: count, by: 20) {
                    try await site.dispatch(
                        lines: Self.lines(min(20, count - part)), to: "document",
                        at: sequencer.address, "--timeout", "110s")
                    most = max(most, try site.diskBytes(of: "log"))
                }
                print("bounded: \(count) actions, \(most >> 20) MiB on the disk at most")
                #expect(most < limitMiB << 20)
                if Self.isFullSize { #expect(most < 6 * keepMiB << 20) }
            }
        }

        @Test(.timeLimit(.minutes(10)))
        func `a store whose only host died before a snapshot is frozen, and the others go on`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer(
                    data: "log", "--log-limit", "\(Self.limitMiB)MiB")
                let host = try await site.worker(
                    "host", of: sequencer, stores: ["document/abandoned"])
                _ = try await site.worker("alpha", of: sequencer, stores: ["document/hosted"])
                host.child.signal(SIGKILL)
                let path = try site.write(
                    Self.lines(60).joined(separator: "\n") + "\n", to: "lines.ndjson")
                let rejected = try await site.run(
                    "dispatch", "document/abandoned", "--file", path, "--json", "--connect",
                    sequencer.address, "--timeout", "110s", within: .seconds(240))
                #expect(rejected.end == .exited(80), "\(rejected.message)")
                #expect(rejected.message.contains("actions wait: the log"), "\(rejected.message)")
                let frozen = try await site.event("frozen", of: sequencer.child)
                #expect(frozen[key: "store"] == "document/abandoned")
                #expect(frozen[key: "reason"] == "abandoned")
                try await site.dispatch(
                    lines: Self.lines(60), to: "document/hosted", at: sequencer.address,
                    "--timeout", "110s")
                #expect(try site.diskBytes(of: "log") < Self.limitMiB << 20)
                // Nothing is lost: whoever opens the store gets what was kept aside.
                _ = try await site.worker("next", of: sequencer, stores: ["document/abandoned"])
                _ = try await site.dispatch(
                    #"{"set":{"at":"/n","value":1}}"#, to: "document/abandoned",
                    at: sequencer.address, "--wait", "applied")
            }
        }

        @Test(.timeLimit(.minutes(10)))
        func `large states hold a log up for moments, and a dropped store gives its room back`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log", "--log-limit", "16MiB")
                _ = try await site.worker("alpha", of: sequencer, stores: ["counter", "document"])
                // More than a quarter of the bound: two snapshots of it, and entries, leave no room for a third one.
                let large = String(repeating: "x", count: 900_000)
                for round in 0..<3 {
                    try await site.dispatch(
                        lines: (0..<5).map {
                            #"{"set":{"at":"/k\#($0)","value":"\#(round)\#(large)"}}"#
                        },
                        to: "document", at: sequencer.address, "--timeout", "60s")
                }
                _ = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address, "--timeout", "60s")
                #expect(try site.diskBytes(of: "log") < 16 << 20)
                let dropped = try await site.run(
                    "drop", "document", "--yes", "--connect", sequencer.address)
                #expect(dropped.end == .exited(0), "\(dropped.message)")
                _ = try await site.worker("beta", of: sequencer, stores: ["document/next"])
                try await site.dispatch(
                    lines: (0..<5).map { #"{"set":{"at":"/k\#($0)","value":"\#(large)"}}"# },
                    to: "document/next", at: sequencer.address, "--timeout", "60s")
            }
        }

        @Test(.timeLimit(.minutes(10)))
        func `a stopped process holds the log for some seconds, and then loads a snapshot`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer(
                    data: "log", "--log-limit", "\(Self.limitMiB)MiB")
                let stuck = try await site.worker(
                    "stuck", of: sequencer, stores: ["counter", "document"])
                _ = try await site.worker("alpha", of: sequencer, stores: ["document"])
                _ = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address)
                stuck.child.signal(SIGSTOP)
                try await site.dispatch(
                    lines: Self.lines(60), to: "document", at: sequencer.address, "--timeout",
                    "110s")
                #expect(try site.diskBytes(of: "log") < Self.limitMiB << 20)
                stuck.child.signal(SIGCONT)
                let last = try await site.dispatch(
                    #"{"set":{"at":"/n","value":1}}"#, to: "document", at: sequencer.address)
                let sightings = try await site.sightings(
                    of: "document", at: sequencer.address, in: ["stuck", "alpha"], from: last)
                #expect(Set(sightings.map(\.state)).count == 1)
            }
        }
    }
}
