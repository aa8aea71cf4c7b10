import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// States whose code the program that shows them does not have.
    struct KeptStateTests {
        private static let path = "/stores/ledger/shared"
        private static let add = #"{"add":{"amount":7}}"#

        @Test func `a state without code is shown as the log keeps it, which is said`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let worker = try await site.varyingWorker("w", hosting: "ledger", of: sequencer)
                let first = try await site.dispatch(
                    Self.add, to: "ledger", at: sequencer.address)
                let http = try await site.gateway(of: sequencer).http
                let created = try await http.ask("GET", Self.path).json
                #expect(created[key: "kept"] == "creation")
                #expect(created[key: "state"] == ["total": 0])
                let life = try #require(created[key: "sequence"]?.number)
                #expect(life < first)

                // A planned stop leaves a snapshot, behind which nothing is applied.
                worker.signal(SIGTERM)
                #expect(try await worker.end() == .exited(0))
                let taken = try await site.event("snapshot", of: sequencer.child)
                let number = try #require(taken[key: "sequence"]?.number)
                let last = try await site.dispatch(
                    Self.add, to: "ledger", at: sequencer.address)
                let kept = try await http.ask("GET", Self.path).json
                #expect(kept[key: "kept"] == "snapshot" && kept[key: "at"] == nil)
                #expect(kept[key: "sequence"]?.number == number && number < last)
                #expect(kept[key: "state"] == ["total": 7])
                #expect(
                    kept[key: "reason"] == "This program does not have the code of ledger.")
                let then = try await http.ask("GET", "\(Self.path)?at=\(last)").json
                #expect(then[key: "at"]?.number == last && then[key: "state"] == ["total": 7])
                for (query, status, code) in [
                    ("?at=1", 404, "belowFloor"), ("?at=\(last + 1_000)", 404, "aboveNewest"),
                    ("?at=\(last)&without=\(first)", 404, "unknownStore"),
                    ("?atLeast=\(last)", 404, "unknownStore"),
                ] {
                    let answer = try await http.ask("GET", Self.path + query)
                    #expect(answer.status == status && answer.code == code, "\(query): \(answer)")
                }

                let shown = try await site.run(
                    "observe", "ledger", "--at", "\(last)", "--json", "--connect",
                    sequencer.address)
                #expect(
                    shown.output == [
                        #"{"at":\#(last),"kept":"snapshot","sequence":\#(number),"state":{"total":7},"store":"ledger/shared"}"#
                    ], "\(shown.message)")
                #expect(shown.message.contains("later entries are not applied"))
                let differs = try await site.run(
                    "observe", "ledger", "--at", "\(last)", "--diff", "\(first)", "--json",
                    "--connect", sequencer.address)
                #expect(differs.message.contains("unknownState"), "\(differs.message)")
            }
        }

        @Test func `a key that may not observe the store sees nothing of it`() async throws {
            try await withSite { site in
                let keyed = try await KeyedSite(
                    site, ["host": "all", "guest": "observe=counter/* host=counter/*"])
                let worker = try site.startVaryingWorker(
                    "w", hosting: "ledger", of: keyed.sequencer, keyed.options("host"))
                _ = try await site.event("ready", of: worker)
                let done = try await keyed.run("host", "dispatch", "ledger", Self.add, "--json")
                let line = try #require(done.output.first, "\(done.message)")
                let number = try #require(try object(line)[key: "sequence"]?.number)
                let gateway = try await site.gateway(
                    of: keyed.sequencer, stores: ["counter"], options: keyed.options("guest"))
                for query in ["", "?at=\(number)"] {
                    let answer = try await gateway.http.ask("GET", Self.path + query)
                    #expect(answer.status == 403 && answer.code == "notAllowed", "\(answer)")
                    #expect(answer.json[key: "state"] == nil)
                }
                let shown = try await keyed.run(
                    "guest", "observe", "ledger", "--at", "\(number)", "--json")
                #expect(shown.end == .exited(77) && shown.output.isEmpty, "\(shown.message)")
            }
        }
    }
}
