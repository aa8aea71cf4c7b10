import Foundation
import Testing

/// The rights of keys, as an operator sees them.
struct RightsTests {
    @Test func `each key can use its rights, and the log says whose actions they were`()
        async throws
    {
        try await withSite { site in
            let keyed = try await KeyedSite(
                site,
                [
                    "host": "host=counter/*,document/*",
                    "api": "dispatch=counter/* observe=counter",
                    "ops": "administer observe",
                ])
            _ = try await site.worker(
                "w1", of: keyed.sequencer, stores: ["counter", "document"],
                options: keyed.options("host"))
            let secret = #"{"set":{"at":"/a","value":"secret"}}"#
            let done = try await keyed.run("api", "dispatch", "counter/*", #"{"increment":{}}"#)
            #expect(done.end == .exited(0), "\(done.message)")
            for words in [["dispatch", "document/*", secret], ["drop", "counter/shared"]] {
                let denied = try await Tool.outcome(
                    of: try site.start(
                        words + ["--connect", keyed.sequencer.address] + keyed.options("api")),
                    within: .seconds(60))
                #expect(denied.end == .exited(77), "\(words): \(denied)")
                #expect(denied.message.contains("the key api may not"), "\(denied.message)")
            }
            let state = try await keyed.run("api", "observe", "counter")
            #expect(state.end == .exited(0), "\(state)")
            let hidden = try await keyed.run("api", "observe", "document")
            #expect(hidden.end == .exited(77), "\(hidden)")

            let log = try await keyed.run("ops", "log", "--json")
            #expect(log.end == .exited(0))
            let lines = try log.output.map { try object($0) }
            #expect(lines.contains { $0[key: "kind"] == "action" && $0[key: "key"] == "api" })
            #expect(lines.contains { $0[key: "kind"] == "created" && $0[key: "key"] == "host" })
            let frozen = try await keyed.run("ops", "freeze", "counter/shared")
            #expect(frozen.end == .exited(0), "\(frozen)")
            let text = try await keyed.run("ops", "log", "--target", "counter/*")
            #expect(
                text.output.contains { $0.contains("frozen") && $0.hasSuffix("by the key ops") })
        }
    }

    @Test func `a client without the right to observe a store sees only that its entries exist`()
        async throws
    {
        try await withSite { site in
            let keyed = try await KeyedSite(
                site, ["all": "all", "guest": "observe=counter"])
            _ = try await site.worker(
                "w1", of: keyed.sequencer, stores: ["counter", "document"],
                options: keyed.options("all"))
            let secret = #"{"set":{"at":"/a","value":"secret"}}"#
            #expect(
                try await keyed.run("all", "dispatch", "document/*", secret).end
                    == .exited(0))
            #expect(
                try await keyed.run(
                    "all", "dispatch", "counter/*", #"{"increment":{}}"#
                ).end
                    == .exited(0))
            let log = try await keyed.run("guest", "log", "--json")
            #expect(log.end == .exited(0))
            let lines = log.output.joined(separator: "\n")
            #expect(lines.contains("hidden") && lines.contains("increment"))
            #expect(!lines.contains("secret"))
            let whole = try await keyed.run("all", "log", "--json")
            #expect(whole.output.joined().contains("secret"))
            // Entries that arrive by the feed are hidden in the same way.
            let follower = try site.start(
                ["log", "--follow", "--json", "--connect", keyed.sequencer.address]
                    + keyed.options("guest"))
            _ = try await follower.output.first { $0.contains("increment") }
            #expect(
                try await keyed.run("all", "dispatch", "document/*", secret).end
                    == .exited(0))
            let (_, line) = try await follower.output.first { $0.contains("hidden") }
            #expect(!line.contains("secret"))
        }
    }

    @Test(.timeLimit(.minutes(3)))
    func `the place where replicas differ is shown only to keys that may observe the store`()
        async throws
    {
        try await withSite { site in
            let keyed = try await KeyedSite(
                site,
                [
                    "host": "host=wordlist/* dispatch=wordlist/*", "auditor": "observe=wordlist/*",
                    "guest": "observe=counter/* dispatch=counter/*", "ops": "administer",
                ])
            for name in ["alpha", "unordered"] {
                let worker = try site.start(
                    [
                        "--json", "--connect", keyed.sequencer.address, "--name", name, "--store",
                        "wordlist",
                    ] + keyed.options("host"), program: "VaryingWorker")
                _ = try await site.event("ready", of: worker)
            }
            let padding = String(repeating: "x", count: 8 << 10)
            let lines = (0..<80).map { index in
                #"{"add":{"padding":"\#(padding)","word":"w\#(index)"}}"#
            }
            let file = try site.write(lines.joined(separator: "\n") + "\n", to: "words.ndjson")
            let done = try await keyed.run("host", "dispatch", "wordlist", "--file", file)
            #expect(done.end == .exited(0), "\(done)")
            let noted = try await site.event("diverged", of: keyed.sequencer.child) {
                $0[key: "path"] != nil
            }
            let path = try #require(noted[key: "path"]?.string)
            for (name, sees) in [
                ("auditor", true), ("host", true), ("guest", false), ("ops", false),
            ] {
                for words in [["status", "--json"], ["status"]] {
                    let status = try await keyed.run(name, words)
                    #expect(status.end == .exited(0), "\(name): \(status)")
                    let text = status.output.joined(separator: "\n")
                    #expect(text.contains("wordlist/shared"), "\(name): \(text)")
                    #expect(text.contains(path) == sees, "\(name) \(words): \(text)")
                }
            }
        }
    }

    @Test func `an administrator has the keys read again, and is told what is wrong with them`()
        async throws
    {
        try await withSite { site in
            let names = ["ops": "administer", "some": "administer=counter", "new": "observe"]
            let keyed = try await KeyedSite(site, names)
            let denied = try await keyed.run("some", "reload")
            #expect(denied.end == .exited(77), "\(denied)")
            #expect(denied.message.contains("may not administer"), "\(denied)")

            try keyed.authorize(names.merging(["new": "fly"]) { $1 })
            let invalid = try await keyed.run("ops", "reload")
            #expect(invalid.end == .exited(66), "\(invalid)")
            #expect(invalid.message.contains("authorized, line "), "\(invalid)")
            _ = try await keyed.sequencer.child.errors.first { line in
                line.contains("authorized, line ") && line.contains("former keys stay")
            }
            #expect(try await keyed.run("new", "status").end == .exited(0))

            try keyed.authorize(["ops": "administer"])
            let done = try await keyed.run("ops", "reload", "--json")
            #expect(done.end == .exited(0), "\(done)")
            #expect(done.output == [#"{"count":1}"#])
            _ = try await keyed.sequencer.child.output.first { $0.contains("\"authorized\"") }
            #expect(try await keyed.run("new", "status").end == .exited(77))

            // This works even if the new file takes the right away from the key that asks.
            try keyed.authorize(["some": "administer"])
            let last = try await keyed.run("ops", "reload", "--json")
            #expect(last.end == .exited(0), "\(last)")
            #expect(last.output == [#"{"count":1}"#])
            #expect(try await keyed.run("ops", "status").end == .exited(77))
        }
    }

    @Test func `a sequencer without keys has none to read again`() async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer()
            let outcome = try await site.run("reload", "--connect", sequencer.address)
            #expect(outcome.end == .exited(66) && outcome.message.contains("--authorized"))
        }
    }

    @Test func `removed rights end at once, for connected clients too`() async throws {
        try await withSite { site in
            let keyed = try await KeyedSite(site, ["host": "all"])
            let worker = try await site.worker(
                "w1", of: keyed.sequencer, stores: ["counter"], options: keyed.options("host"))
            try keyed.authorize(["host": "observe"])
            keyed.sequencer.child.signal(SIGHUP)
            let (_, line) = try await worker.child.output.first { $0.contains("connectionRefused") }
            #expect(line.contains("may not host counter/shared"), "\(line)")
            try keyed.authorize(["host": "host dispatch"])
            keyed.sequencer.child.signal(SIGHUP)
            _ = try await worker.child.output.first { $0.contains("reconnected") }
        }
    }
}
