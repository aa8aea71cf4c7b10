import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// `conflux bench`: with its own sequencer, and with a running one.
    struct BenchTests {
        private static let few = ["--single", "20", "--stream", "500", "--in-flight", "64"]

        private func figures(_ line: String?) throws -> (single: JSONObject, stream: JSONObject) {
            let figures = try object(try #require(line))
            guard case .object(let single)? = figures[key: "single"],
                case .object(let stream)? = figures[key: "stream"]
            else { throw Failure("\(figures)") }
            return (single, stream)
        }

        private func run(_ site: Site, _ words: [String]) async throws -> Tool.Outcome {
            try await Tool.outcome(
                of: try site.start(["bench"] + words + Self.few), within: .seconds(60))
        }

        /// The folder of the log of a running bench.
        private func ownLog(_ site: Site) throws -> String? {
            try FileManager.default.contentsOfDirectory(atPath: site.folder)
                .first { $0.hasPrefix("conflux-bench") }
        }

        @Test(arguments: [["--memory"], ["--data", "."]])
        func `bench measures its own sequencer, and leaves nothing`(own: [String]) async throws {
            try await withSite { site in
                let words = own.map { $0 == "." ? site.folder : $0 }
                let run = try await run(site, ["--json"] + words)
                #expect(run.end == .exited(0), "\(run.message)")
                let (single, stream) = try figures(run.output.first)
                #expect(single["count"]?.number == 20)
                #expect(stream["count"]?.number == 500)
                #expect(stream["inFlight"]?.number == 64)
                #expect(try #require(stream["perSecond"]?.number) > 0)
                let ranks = try ["p50", "p90", "p99", "max"].map {
                    try #require(single[$0]?.number)
                }
                #expect(ranks == ranks.sorted())
                #expect(try ownLog(site) == nil)
            }
        }

        @Test func `keys in the environment are for a running sequencer, not for bench's own`()
            async throws
        {
            try await withSite { site in
                let keyed = try await KeyedSite(site, ["meter": "all"])
                let run = try await Tool.outcome(
                    of: try site.start(
                        ["bench", "--memory"] + Self.few,
                        variables: [
                            "CONFLUX_CURVE_SECRET": site.path("meter.secret"),
                            "CONFLUX_SERVER_KEY": site.path("sequencer.public"),
                        ]), within: .seconds(60))
                #expect(run.end == .exited(0), "\(run.message)")
                withExtendedLifetime(keyed) {}
            }
        }

        @Test func `bench measures a running sequencer, whose log has the actions`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log")
                let run = try await run(site, ["--connect", sequencer.address])
                #expect(run.end == .exited(0), "\(run.message)")
                #expect(
                    run.output.first == "sequencer: \(sequencer.address); 64 bytes an action")
                #expect(run.output.allSatisfy { $0.count <= 80 }, "\(run.output)")
                let log = try await site.run(
                    "log", "--connect", sequencer.address, "--target", "conflux-bench/*", "--json")
                // The 100 actions of the warm-up come first.
                #expect(log.output.count == 620, "\(log.message)")
            }
        }

        @Test func `a signal ends bench, and its log is removed`() async throws {
            try await withSite { site in
                let bench = try site.start([
                    "bench", "--data", site.folder, "--single", "1000000",
                ])
                let deadline = ContinuousClock.now + .seconds(60)
                while try ownLog(site) == nil {
                    try #require(ContinuousClock.now < deadline)
                    await Task.yield()
                }
                bench.signal(SIGINT)
                #expect(try await bench.end() == .exited(130))
                #expect(try ownLog(site) == nil)
            }
        }

        @Test func `a key needs the rights to dispatch and to host`() async throws {
            try await withSite { site in
                let keyed = try await KeyedSite(
                    site,
                    [
                        "meter": "dispatch=conflux-bench/* host=conflux-bench/*",
                        "guest": "dispatch=counter",
                    ])
                let done = try await keyed.run("meter", ["bench"] + Self.few)
                #expect(done.end == .exited(0), "\(done.message)")
                let denied = try await keyed.run("guest", ["bench"] + Self.few)
                #expect(denied.end == .exited(77), "\(denied.message)")
                #expect(denied.message.contains("the key guest may not"), "\(denied.message)")
            }
        }
    }
}
