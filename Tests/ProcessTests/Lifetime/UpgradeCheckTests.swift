import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// A newer program that checks whether it can take over the stores of an older one.
    struct UpgradeCheckTests {
        /// The totals at which the migration of the test's program makes a mistake: see Tests/VaryingWorker.
        private static let totals = [
            "endless": 13, "good": 5, "random": 14, "trapping": 12, "unordered": 15,
            "unreadable": 11,
        ]

        @Test(.timeLimit(.minutes(3)))
        func `each store is checked, and each failure says why`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let names = Self.totals.keys.sorted()
                let old = try site.start(
                    ["--json", "--connect", sequencer.address, "--name", "old"]
                        + names.flatMap { ["--store", "ledger/\($0)"] },
                    program: "VaryingWorker")
                _ = try await site.event("ready", of: old)
                for name in names {
                    try await site.dispatch(
                        lines: [#"{"add":{"amount":\#(Self.totals[name] ?? 0)}}"#],
                        to: "ledger/\(name)", at: sequencer.address)
                }

                let outcome = try await check(site, sequencer, "--timeout", "8s")
                #expect(outcome.end == .exited(70), "\(outcome.message)")
                let lines = try outcome.output.map { try object($0) }
                #expect(lines.last?[key: "checked"]?.number == 6)
                #expect(lines.last?[key: "failed"]?.number == 5)
                var codes: [String: String] = [:]
                for line in lines.dropLast() {
                    let store = try #require(line[key: "store"]?.string)
                    codes[store] = line[key: "failure"]?[key: "code"]?.string ?? "none"
                }
                #expect(
                    codes == [
                        "ledger/endless": "timedOut", "ledger/good": "none",
                        "ledger/random": "migrationFailed", "ledger/trapping": "trapped",
                        "ledger/unordered": "migrationFailed",
                        "ledger/unreadable": "migrationFailed",
                    ], "\(outcome.output)")
                let texts = outcome.output.joined(separator: "\n")
                #expect(texts.contains("the total is odd"))
                #expect(texts.contains("Fatal error: the total is 12"))

                // Nothing has changed: the stores have their version, and the old worker its state.
                let status = try await site.status(of: "ledger/good", at: sequencer.address)
                #expect(status[key: "schemaVersion"]?.number == 1)
                #expect(old.isRunning)
            }
        }

        @Test(.timeLimit(.minutes(2)))
        func `the changes of a store are shown by key path`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let old = try await site.varyingWorker("old", hosting: "ledger", of: sequencer)
                let number = try await site.dispatch(
                    lines: [#"{"add":{"amount":5}}"#], to: "ledger", at: sequencer.address)
                let outcome = try await check(site, sequencer, "ledger")
                #expect(outcome.end == .exited(0), "\(outcome.message)")
                #expect(
                    outcome.output.first
                        == #"{"changes":[{"new":{"total":5},"path":"/sums"},"#
                        + #"{"old":5,"path":"/total"}],"from":1,"sequence":\#(number),"#
                        + #""store":"ledger/shared","to":2}"#)

                // Without a host, the log has the state: the last one left its snapshot.
                old.signal(SIGTERM)
                #expect(try await old.end() == .exited(0))
                let unhosted = try await check(site, sequencer, "--timeout", "2s")
                #expect(unhosted.end == .exited(0), "\(unhosted.message)")
                #expect(
                    unhosted.output.first?.hasPrefix(
                        #"{"changes":[{"new":{"total":5},"path":"/sums"},"#) == true,
                    "\(unhosted.output)")
                let upgrade = try await Tool.outcome(
                    of: try site.start([
                        "upgrade", "ledger", "--json", "--timeout", "3s", "--connect",
                        sequencer.address,
                    ]), within: .seconds(60))
                #expect(upgrade.end == .exited(83))
                #expect(upgrade.message.contains("No live node hosts ledger/shared"))
                let none = try await check(site, sequencer, "ledger/none")
                #expect(none.end == .exited(84))
            }
        }

        @Test(.timeLimit(.minutes(2)))
        func `a version that has risen already is checked as a store that begins checks it`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let old = try await site.varyingWorker("old", hosting: "ledger", of: sequencer)
                try await site.dispatch(
                    lines: [#"{"add":{"amount":5}}"#], to: "ledger", at: sequencer.address)
                // A program that hosts the old version must give its states back.
                let forgetful = try await check(site, sequencer, as: "new-both-forgetful")
                #expect(forgetful.end == .exited(70))
                let words = "gives another snapshot of ledger back"
                #expect(forgetful.output.first?.contains(words) == true, "\(forgetful.output)")
                #expect(try await check(site, sequencer, as: "new-both-1").end == .exited(0))
                old.signal(SIGTERM)
                #expect(try await old.end() == .exited(0))
                // The version rises from the snapshot of the old program, and there is no newer one.
                let new = try await site.varyingWorker("new", hosting: "ledger", of: sequencer)
                new.signal(SIGKILL)
                _ = try await new.end()
                _ = try await site.event("left", of: sequencer.child) { $0[key: "name"] == "new" }

                for name in ["new-1", "new-both-1"] {
                    let same = try await check(site, sequencer, as: name)
                    #expect(same.end == .exited(0), "\(same.message)")
                    #expect(
                        same.output.first?.hasPrefix(
                            #"{"changes":[{"new":{"total":5},"path":"/sums"},"#
                                + #"{"old":5,"path":"/total"}],"from":1,"#) == true,
                        "\(same.output)")
                }
                for (name, code, words) in [
                    ("new-other", "migrationFailed", "another state of the snapshot"),
                    ("old", "newerSnapshot", "Run a newer program"),
                ] {
                    let failed = try await check(site, sequencer, as: name)
                    #expect(failed.end == .exited(70), "\(failed.output)")
                    let failure = try object(try #require(failed.output.first))[key: "failure"]
                    #expect(failure?[key: "code"]?.string == code)
                    #expect(failure?[key: "message"]?.string?.contains(words) == true)
                }
                // A worker says the same.
                let worker = try await Tool.outcome(
                    of: try site.startVaryingWorker(
                        "new-other", hosting: "ledger", of: sequencer))
                #expect(worker.end == .exited(70))
                #expect(worker.message.contains("another state of the snapshot"))
            }
        }

        @Test(.timeLimit(.minutes(2)))
        func `a store whose snapshot is damaged fails, and the others are checked`() async throws {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                let old = try site.start(
                    [
                        "--json", "--connect", sequencer.address, "--name", "old", "--store",
                        "ledger/damaged", "--store", "ledger/good",
                    ], program: "VaryingWorker")
                _ = try await site.event("ready", of: old)
                for (store, amount) in [("damaged", 20_210), ("good", 5)] {
                    try await site.dispatch(
                        lines: [#"{"add":{"amount":\#(amount)}}"#], to: "ledger/\(store)",
                        at: sequencer.address)
                }
                // A planned stop leaves snapshots.
                old.signal(SIGTERM)
                #expect(try await old.end() == .exited(0))
                try await site.backUp(ending: [sequencer.child])
                try site.flip(#""total":20210"#.utf8, to: "flipped")

                sequencer = try await site.sequencer(data: "flipped")
                let outcome = try await check(site, sequencer)
                #expect(outcome.end == .exited(70), "\(outcome.message)")
                let lines = try outcome.output.map { try object($0) }
                try #require(lines.count == 3, "\(outcome.output)")
                #expect(lines[0][key: "store"] == "ledger/damaged")
                #expect(lines[0][key: "failure"]?[key: "code"] == "snapshotGone")
                #expect(lines[1][key: "store"] == "ledger/good" && lines[1][key: "changes"] != nil)
                #expect(
                    lines[2][key: "checked"]?.number == 2 && lines[2][key: "failed"]?.number == 1)
            }
        }

        @Test func `a folder for temporary files that does not exist is named, and not made`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.varyingWorker("old", hosting: "ledger", of: sequencer)
                let folder = site.path("nothing/here")
                let outcome = try await check(site, sequencer, variables: ["TMPDIR": folder])
                #expect(outcome.end == .exited(73), "\(outcome.message)")
                #expect(outcome.message.contains("Make the folder \(folder)"), "\(outcome.message)")
                #expect(!FileManager.default.fileExists(atPath: site.path("nothing")))
            }
        }

        /// Runs the check of a program: of the newer one, unless it has another name.
        private func check(
            _ site: Site, _ sequencer: RunningSequencer, as name: String = "new",
            variables: [String: String] = [:], _ options: String...
        ) async throws -> Tool.Outcome {
            try await Tool.outcome(
                of: try site.start(
                    ["upgrade", "--check", "--json", "--connect", sequencer.address] + options,
                    program: "VaryingWorker",
                    variables: variables.merging(["VARYING_NAME": name]) { $1 }),
                within: .seconds(120))
        }
    }
}
