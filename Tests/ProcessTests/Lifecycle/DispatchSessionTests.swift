import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// Processes that dispatch one action.
    struct DispatchSessionTests {
        @Test func `an action costs three entries, and leaves no session behind`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                let before = try await kinds(site, sequencer)
                for _ in 1...3 {
                    let done = try await site.run(
                        "dispatch", "counter/*", "increment", "--wait", "applied", "--connect",
                        sequencer.address)
                    #expect(done.end == .exited(0), "\(done.message)")
                }
                let added = try await kinds(site, sequencer).dropFirst(before.count)
                #expect(
                    Array(added) == (1...3).flatMap { _ in ["joined", "action", "forgotten"] })

                let status = try await site.run(
                    "status", "--json", "--connect", sequencer.address)
                let sessions = try object(status.output.first ?? "")[key: "sessions"]?.array
                #expect(sessions?.count == 1)

                sequencer.child.signal(SIGTERM)
                #expect(try await sequencer.child.end() == .exited(0))
                let events = try await sequencer.child.output.all().compactMap {
                    try object($0)[key: "event"]?.string
                }
                #expect(events.filter { $0 == "joined" }.count == 4)
                #expect(events.filter { $0 == "left" }.count == 3)
            }
        }

        @Test func `a stream joins, and leaves`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                let before = try await kinds(site, sequencer)
                let lines = try site.write("increment\nincrement\n", to: "lines")
                let done = try await site.run(
                    "dispatch", "counter/*", "--file", lines, "--connect", sequencer.address)
                #expect(done.end == .exited(0), "\(done.message)")
                let added = try await kinds(site, sequencer).dropFirst(before.count)
                #expect(Array(added) == ["joined", "action", "action", "forgotten"])
            }
        }

        @Test func `a rejected action is reported`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let told = try await site.run(
                    "dispatch", "nowhere/7", "{}", "--json", "--connect", sequencer.address)
                let error = try object(told.output.first ?? "")[key: "error"]
                #expect(error?[key: "code"] == "unknownTarget", "\(told.output) \(told.message)")
            }
        }

        /// The kinds of all entries except digest points, whose time is not fixed.
        private func kinds(_ site: Site, _ sequencer: RunningSequencer) async throws -> [String] {
            let log = try await site.run(
                "log", "--from", "1", "--json", "--connect", sequencer.address)
            return try log.output.compactMap { try object($0)[key: "kind"]?.string }
                .filter { $0 != "digestPoint" }
        }
    }
}
