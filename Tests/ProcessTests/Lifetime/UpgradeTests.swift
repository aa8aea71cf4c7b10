import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// Programs with two versions of one state.
    struct UpgradeTests {
        @Test(.timeLimit(.minutes(3)))
        func `a newer program upgrades a store under load, and older ones stop it and say so`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let old = [
                    try await site.varyingWorker("old-1", hosting: "ledger", of: sequencer),
                    try await site.varyingWorker("old-2", hosting: "ledger", of: sequencer),
                ]
                let load = try site.start(
                    [
                        "dispatch", "ledger/*", "-", "--json", "--connect", sequencer.address,
                        "--schema-version", "1",
                    ], input: .pipe)
                load.feed(sums(of: 500))
                _ = try await load.output.line(100)
                let new = try await site.varyingWorker("new-1", hosting: "ledger", of: sequencer)
                let upgraded = try await site.event("upgraded", of: sequencer.child)
                #expect(upgraded[key: "store"] == "ledger/shared")
                #expect(upgraded[key: "schemaVersion"]?.number == 2)
                load.feed(sums(of: 500))
                load.endInput()
                #expect(try await load.end() == .exited(0), "\(load.report)")
                let line = try #require(load.output.soFar.last)
                let last = try #require(try object(line)[key: "sequence"]?.number)
                // All nodes apply the entries of the old version.
                let sightings = try await site.sightings(
                    of: "ledger", at: sequencer.address, in: ["old-1", "old-2", "new-1"],
                    from: last)
                #expect(
                    sightings.map(\.state) == [
                        #"{"total":1000}"#, #"{"total":1000}"#, #"{"sums":{"total":1000}}"#,
                    ])

                // The tool dispatches with the version that the store has.
                let booked = try await site.dispatch(
                    #"{"book":{"amount":5,"under":"rent"}}"#, to: "ledger", at: sequencer.address)
                for child in old {
                    let stopped = try await site.event("storeStopped", of: child)
                    #expect(stopped[key: "store"] == "ledger/shared")
                    #expect(stopped[key: "sequence"]?.number == booked)
                    let message = try #require(stopped[key: "message"]?.string)
                    #expect(message.contains("schema version 2"))
                    #expect(message.contains("Run a newer program"))
                }
                let seen = try await site.sightings(
                    of: "ledger", at: sequencer.address, in: ["new-1"], from: booked)
                #expect(seen.map(\.state) == [#"{"sums":{"rent":5,"total":1000}}"#])

                let late = try await Tool.outcome(
                    of: try site.startVaryingWorker("old-3", hosting: "ledger", of: sequencer))
                #expect(late.end == .exited(70), "\(late.message)")
                let message = try #require(
                    try object(late.errors.last ?? "")[key: "error"]?[key: "message"]?.string)
                #expect(message.contains("ledger/shared") && message.contains("version 2"))
                #expect(message.contains("newer program"))

                // A second new worker gets the same state, although its program starts with another one.
                _ = try await site.varyingWorker("new-2", hosting: "ledger", of: sequencer)
                let padded = try await site.dispatch(
                    lines: sums(of: 60, padding: 8 << 10), to: "ledger", at: sequencer.address)
                let both = try await site.sightings(
                    of: "ledger", at: sequencer.address, in: ["new-1", "new-2"], from: padded)
                #expect(Set(both.map(\.state)) == [#"{"sums":{"rent":5,"total":1060}}"#])
                let status = try await site.status(of: "ledger/shared", at: sequencer.address)
                #expect(status[key: "schemaVersion"]?.number == 2)
                #expect(status[key: "divergence"] == nil)
                let stopped = try #require(status[key: "stopped"]?.array)
                #expect(stopped.map { $0[key: "name"]?.string } == ["old-1", "old-2"])
                #expect(stopped.allSatisfy { $0[key: "sequence"]?.number == booked })
                #expect(new.isRunning && old.allSatisfy(\.isRunning))
            }
        }

        private func sums(of count: Int, padding: Int = 0) -> [String] {
            let text = String(repeating: "x", count: padding)
            return (0..<count).map { _ in
                padding == 0
                    ? #"{"add":{"amount":1}}"# : #"{"add":{"amount":1,"padding":"\#(text)"}}"#
            }
        }
    }
}
