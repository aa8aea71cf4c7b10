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

        /// Runs the check of the newer program.
        private func check(
            _ site: Site, _ sequencer: RunningSequencer, _ options: String...
        ) async throws -> Tool.Outcome {
            try await Tool.outcome(
                of: try site.start(
                    ["upgrade", "--check", "--json", "--connect", sequencer.address] + options,
                    program: "VaryingWorker", variables: ["VARYING_IS_NEW": "yes"]),
                within: .seconds(120))
        }
    }
}
