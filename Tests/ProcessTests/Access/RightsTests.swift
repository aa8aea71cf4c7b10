import Foundation
import Testing

/// What keys may do, as an operator sees it.
struct RightsTests {
    /// Makes pairs, and a sequencer that admits them with these rights.
    private func sequencer(
        _ site: Site, _ rights: [String: String]
    ) async throws -> RunningSequencer {
        for name in ["sequencer"] + rights.keys {
            let outcome = try await site.run("keygen", site.path(name))
            #expect(outcome.end == .exited(0))
        }
        try authorize(site, rights)
        return try await site.sequencer(
            "--curve-secret", site.path("sequencer.secret"), "--authorized",
            site.path("authorized"))
    }

    private func authorize(_ site: Site, _ rights: [String: String]) throws {
        let lines = try rights.map { name, rights in
            let file = try String(contentsOfFile: site.path("\(name).public"), encoding: .utf8)
            let key = try #require(file.split(separator: "\n").last)
            return "\(name) \(key) \(rights)\n"
        }
        _ = try site.write(lines.joined(), to: "authorized")
    }

    private func options(_ site: Site, _ name: String) -> [String] {
        [
            "--curve-secret", site.path("\(name).secret"), "--server-key",
            site.path("sequencer.public"),
        ]
    }

    /// Runs a command with a key.
    private func run(
        _ site: Site, _ sequencer: RunningSequencer, as name: String, _ words: String...
    ) async throws -> Tool.Outcome {
        try await Tool.outcome(
            of: try site.start(
                words + ["--connect", sequencer.address] + options(site, name)),
            within: .seconds(60))
    }

    @Test func `each key does what it may, and the log says whose it was`() async throws {
        try await withSite { site in
            let sequencer = try await sequencer(
                site,
                [
                    "host": "host=counter,document", "api": "dispatch=counter observe=counter",
                    "ops": "administer observe",
                ])
            _ = try await site.worker(
                "w1", of: sequencer, stores: ["counter", "document"],
                options: options(site, "host"))
            let secret = #"{"set":{"at":"/a","value":"secret"}}"#
            let done = try await run(
                site, sequencer, as: "api", "dispatch", "counter", #"{"increment":{}}"#)
            #expect(done.end == .exited(0), "\(done.message)")
            for words in [["dispatch", "document", secret], ["drop", "counter/shared"]] {
                let denied = try await Tool.outcome(
                    of: try site.start(
                        words + ["--connect", sequencer.address] + options(site, "api")),
                    within: .seconds(60))
                #expect(denied.end == .exited(77), "\(words): \(denied)")
                #expect(denied.message.contains("the key api may not"), "\(denied.message)")
            }
            let state = try await run(site, sequencer, as: "api", "observe", "counter")
            #expect(state.end == .exited(0), "\(state)")
            let hidden = try await run(site, sequencer, as: "api", "observe", "document")
            #expect(hidden.end == .exited(77), "\(hidden)")

            let log = try await run(site, sequencer, as: "ops", "log", "--json")
            #expect(log.end == .exited(0))
            let lines = try log.output.map { try object($0) }
            #expect(lines.contains { $0[key: "kind"] == "action" && $0[key: "key"] == "api" })
            #expect(lines.contains { $0[key: "kind"] == "created" && $0[key: "key"] == "host" })
            let frozen = try await run(site, sequencer, as: "ops", "freeze", "counter/shared")
            #expect(frozen.end == .exited(0), "\(frozen)")
            let text = try await run(site, sequencer, as: "ops", "log", "--target", "counter")
            #expect(
                text.output.contains { $0.contains("frozen") && $0.hasSuffix("by the key ops") })
        }
    }

    @Test func `who may not observe a store sees of the log that it is there, and no more`()
        async throws
    {
        try await withSite { site in
            let sequencer = try await sequencer(
                site, ["all": "all", "guest": "observe=counter"])
            _ = try await site.worker(
                "w1", of: sequencer, stores: ["counter", "document"],
                options: options(site, "all"))
            let secret = #"{"set":{"at":"/a","value":"secret"}}"#
            #expect(
                try await run(site, sequencer, as: "all", "dispatch", "document", secret).end
                    == .exited(0))
            #expect(
                try await run(
                    site, sequencer, as: "all", "dispatch", "counter", #"{"increment":{}}"#
                ).end
                    == .exited(0))
            let log = try await run(site, sequencer, as: "guest", "log", "--json")
            #expect(log.end == .exited(0))
            let lines = log.output.joined(separator: "\n")
            #expect(lines.contains("hidden") && lines.contains("increment"))
            #expect(!lines.contains("secret"))
            let whole = try await run(site, sequencer, as: "all", "log", "--json")
            #expect(whole.output.joined().contains("secret"))
            // What comes by the feed is no other.
            let follower = try site.start(
                ["log", "--follow", "--json", "--connect", sequencer.address]
                    + options(site, "guest"))
            _ = try await follower.output.first { $0.contains("increment") }
            #expect(
                try await run(site, sequencer, as: "all", "dispatch", "document", secret).end
                    == .exited(0))
            let (_, line) = try await follower.output.first { $0.contains("hidden") }
            #expect(!line.contains("secret"))
        }
    }

    @Test func `an administrator has the keys read again, and is told what is wrong with them`()
        async throws
    {
        try await withSite { site in
            let names = ["ops": "administer", "some": "administer=counter", "new": "observe"]
            let sequencer = try await sequencer(site, names)
            let denied = try await run(site, sequencer, as: "some", "reload")
            #expect(denied.end == .exited(77), "\(denied)")
            #expect(denied.message.contains("may not administer"), "\(denied)")

            try authorize(site, names.merging(["new": "fly"]) { $1 })
            let invalid = try await run(site, sequencer, as: "ops", "reload")
            #expect(invalid.end == .exited(66), "\(invalid)")
            #expect(invalid.message.contains("authorized, line "), "\(invalid)")
            #expect(try await run(site, sequencer, as: "new", "status").end == .exited(0))

            try authorize(site, ["ops": "administer"])
            let done = try await run(site, sequencer, as: "ops", "reload", "--json")
            #expect(done.end == .exited(0), "\(done)")
            #expect(done.output == [#"{"count":1}"#])
            _ = try await sequencer.child.output.first { $0.contains("\"authorized\"") }
            #expect(try await run(site, sequencer, as: "new", "status").end == .exited(77))
        }
    }

    @Test func `a sequencer without keys has none to read again`() async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer()
            let outcome = try await site.run("reload", "--connect", sequencer.address)
            #expect(outcome.end == .exited(66) && outcome.message.contains("--authorized"))
        }
    }

    @Test func `rights that are taken away count at once, and for who is connected`() async throws {
        try await withSite { site in
            let sequencer = try await sequencer(site, ["host": "all"])
            let worker = try await site.worker(
                "w1", of: sequencer, stores: ["counter"], options: options(site, "host"))
            try authorize(site, ["host": "observe"])
            sequencer.child.signal(SIGHUP)
            let (_, line) = try await worker.child.output.first { $0.contains("connectionRefused") }
            #expect(line.contains("may not host counter/shared"), "\(line)")
            try authorize(site, ["host": "host dispatch"])
            sequencer.child.signal(SIGHUP)
            _ = try await worker.child.output.first { $0.contains("reconnected") }
        }
    }
}
