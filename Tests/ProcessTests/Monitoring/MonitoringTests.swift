import Conflux
import Foundation
import Testing

/// The metrics and the health that the programs report.
struct MonitoringTests {
    @Test func `metrics show what a sequencer and a worker do`() async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer(data: "log", "--http", "127.0.0.1:0")
            let worker = try await site.worker(
                "alpha", of: sequencer, options: ["--http", "127.0.0.1:0"])
            for path in ["/livez", "/readyz"] {
                for ready in [sequencer.ready, worker.ready] {
                    let answer = try await Scrape.get(ready[key: "http"], path)
                    #expect(answer == (200, "ok\n"), "\(path)")
                }
            }
            #expect(try await Scrape.get(sequencer.ready[key: "http"], "/nothing").status == 404)
            for _ in 0..<3 {
                let outcome = try await site.run(
                    "dispatch", "--connect", sequencer.address, "counter/*", "increment")
                #expect(outcome.end == .exited(0))
            }
            let rejected = try await site.run(
                "dispatch", "--connect", sequencer.address, "counter/none", "increment")
            #expect(rejected.end == .exited(80))
            // The programs publish their numbers one after the other. In the end they agree.
            var (text, ofWorker) = ("", "")
            func number(_ name: String) -> Double? {
                Scrape.value("conflux_sequencer_\(name)", in: text)
            }
            let deadline = ContinuousClock.now + .seconds(60)
            while true {
                text = try await Scrape.metrics(of: sequencer.ready) {
                    $0.contains("rejections_total{reason=\"unknownTarget\"} 1\n")
                        && $0.contains("node_lag_entries{node=\"alpha\"} 0\n")
                }
                ofWorker = try await Scrape.get(worker.ready[key: "http"], "/metrics").body
                let last = try #require(number("last_entry"))
                let commits = try #require(number("commits_total"))
                let appends = try #require(number("log_append_duration_seconds_count"))
                let applied = Scrape.value("conflux_node_applied_entry", in: ofWorker)
                if applied == last, number("entries_total") == last, commits >= 4, commits <= last,
                    appends > 0, appends <= commits
                {
                    break
                }
                try #require(ContinuousClock.now < deadline, "not so in time:\n\(text)\(ofWorker)")
            }
            for (name, least) in [
                ("conflux_ready", 1), ("conflux_sequencer_serving", 1),
                ("conflux_sequencer_terms_total", 1), ("conflux_sequencer_replicas", 1),
                ("conflux_sequencer_log_file_bytes", 4_096),
                ("conflux_sequencer_log_free_bytes", 1),
                ("conflux_process_resident_memory_bytes", 1_048_576),
                ("conflux_process_start_time_seconds", 1_600_000_000),
                ("conflux_bound_limit{bound=\"sessionsMax\"}", 10_000),
                ("conflux_bound_level{bound=\"sessionsMax\"}", 1),
            ] as [(String, Double)] {
                #expect(Scrape.value(name, in: text).map { $0 >= least } == true, "\(name)")
            }
            for (name, expected) in [
                ("conflux_ready", 1), ("conflux_node_connected", 1), ("conflux_node_stores", 2),
                ("conflux_node_catching_up_stores", 0), ("conflux_node_lag_entries", 0),
            ] as [(String, Double)] {
                #expect(Scrape.value(name, in: ofWorker) == expected, "\(name)")
            }
        }
    }

    @Test func `the lag of a stopped node is reported in entries and seconds`() async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer("--http", "127.0.0.1:0")
            let worker = try await site.worker("alpha", of: sequencer)
            _ = try await Scrape.metrics(of: sequencer.ready) {
                Scrape.value("conflux_sequencer_node_lag_entries{node=\"alpha\"}", in: $0) == 0
            }
            worker.child.signal(SIGSTOP)
            let outcome = try await site.run(
                "dispatch", "--connect", sequencer.address, "counter/*", "increment", "--wait",
                "committed")
            #expect(outcome.end == .exited(0))
            let text = try await Scrape.metrics(of: sequencer.ready) {
                let age = Scrape.value("conflux_sequencer_node_lag_seconds{node=\"alpha\"}", in: $0)
                return age.map { $0 > 1 } == true
            }
            let lag = try #require(
                Scrape.value("conflux_sequencer_node_lag_entries{node=\"alpha\"}", in: text))
            #expect(lag >= 1)
            #expect(Scrape.value("conflux_sequencer_lag_max_entries", in: text) == lag)
            worker.child.signal(SIGCONT)
            _ = try await Scrape.metrics(of: sequencer.ready) {
                Scrape.value("conflux_sequencer_node_lag_entries{node=\"alpha\"}", in: $0) == 0
            }
        }
    }

    /// Debian's package `prometheus` contains it. It is large, so script/bootstrap installs it only with --checks.
    private static let promtool = ProcessInfo.processInfo.environment["PATH"]?
        .split(separator: ":").map { "\($0)/promtool" }
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    @Test(
        .enabled(
            if: promtool != nil,
            "promtool is not on the PATH: script/bootstrap --checks"))
    func `promtool accepts the metrics`() async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer(data: "log", "--http", "127.0.0.1:0")
            let worker = try await site.worker(
                "alpha", of: sequencer, options: ["--http", "127.0.0.1:0"])
            _ = try await Scrape.metrics(of: sequencer.ready) { $0.contains("{node=\"alpha\"}") }
            for ready in [sequencer.ready, worker.ready] {
                let path = try site.write(
                    try await Scrape.get(ready[key: "http"], "/metrics").body, to: "metrics")
                let child = try Child(
                    try #require(Self.promtool), ["check", "metrics"], input: .file(path))
                let end = try await child.end()
                #expect(end == .exited(0), "\(child.report)")
                #expect(child.output.soFar.isEmpty && child.errors.soFar.isEmpty, "\(child.report)")
            }
        }
    }

    @Test func `a worker without its sequencer is alive and not ready`() async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer(data: "log")
            let worker = try await site.worker(
                "alpha", of: sequencer, options: ["--http", "127.0.0.1:0"])
            try await sequencer.child.destroy()
            _ = try await worker.child.output.first { $0.contains("\"disconnected\"") }
            let answer = try await Scrape.get(worker.ready[key: "http"], "/readyz")
            #expect(answer == (503, "not connected to the sequencer\n"))
            #expect(try await Scrape.get(worker.ready[key: "http"], "/livez").status == 200)
            let text = try await Scrape.get(worker.ready[key: "http"], "/metrics").body
            #expect(Scrape.value("conflux_ready", in: text) == 0)
            #expect(Scrape.value("conflux_node_connected", in: text) == 0)
            #expect(Scrape.value("conflux_node_disconnections_total", in: text) == 1)
            _ = try await site.sequencer(data: "log", at: sequencer)
            _ = try await Scrape.metrics(of: worker.ready) {
                Scrape.value("conflux_ready", in: $0) == 1
                    && $0.contains("resyncs_total{reason=\"reconnected\"} 1\n")
            }
        }
    }

    @Test func `at an address that others can reach each request needs the token`() async throws {
        try await withSite { site in
            let token = try site.write("0123456789abcdef\n", to: "token")
            chmod(token, 0o600)
            let sequencer = try await site.sequencer("--http", "0.0.0.0:0", "--http-token", token)
            let place = try #require(sequencer.ready[key: "http"]?.string)
            let local = JSONValue.string(
                place.replacingOccurrences(of: "0.0.0.0", with: "127.0.0.1"))
            #expect(try await Scrape.get(local, "/metrics").status == 401)
            #expect(
                try await Scrape.get(local, "/metrics", token: "0123456789abcdeX").status == 401)
            #expect(
                try await Scrape.get(local, "/metrics", token: "0123456789abcdef").status == 200)
        }
    }

    @Test(arguments: [
        (["--http", "0.0.0.0:0"], Int32(64), "--http-token FILE"),
        (["--http", "nonsense"], 64, "127.0.0.1:7480"),
        (["--http-token", "x"], 64, "--http-token is for --http"),
        (["--http", "127.0.0.1:0", "--http-token", "/no/such/file"], 66, "can't be read"),
    ])
    func `invalid options are reported before anything is started`(
        options: [String], code: Int32, words: String
    ) async throws {
        try await withSite { site in
            let outcome = try await Tool.outcome(
                of: try site.start(
                    ["sequencer", "--bind", "tcp://127.0.0.1:0", "--data", site.path("log")]
                        + options),
                within: .seconds(60))
            #expect(outcome.end == .exited(code))
            #expect(outcome.message.contains(words), "\(outcome.message)")
            #expect(!FileManager.default.fileExists(atPath: site.path("log")))
            // A worker reports it before it connects to a sequencer.
            let worker = try await Tool.outcome(
                of: try site.start(["worker", "--connect", "tcp://127.0.0.1:1"] + options),
                within: .seconds(60))
            #expect(worker.end == .exited(code))
            #expect(worker.message.contains(words), "\(worker.message)")
        }
    }

    @Test func `a port in use ends the program with advice`() async throws {
        try await withSite { site in
            let first = try await site.sequencer("--http", "127.0.0.1:0")
            let place = try #require(first.ready[key: "http"]?.string)
            let outcome = try await site.run(
                "sequencer", "--memory", "--bind", "tcp://127.0.0.1:0", "--http", place)
            #expect(outcome.end == .exited(73))
            #expect(outcome.message.contains("choose another port"), "\(outcome.message)")
        }
    }
}
