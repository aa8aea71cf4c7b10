import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// The commands that docs/service.md tells its reader to type.
    struct ServiceTests {
        private static let page = "docs/service.md"

        @Test func `the service does what its page says, before and after its upgrade`()
            async throws
        {
            let sales = try PageStep.all(under: "## 8. ", of: Self.page)
            var upgrade = try PageStep.all(under: "## 9. ", of: Self.page)
            let look = try PageStep.all(under: "## 10. ", of: Self.page)
            try #require(sales.count == 5 && upgrade.count == 4 && look.count == 3)
            try #require(upgrade.removeFirst().command == "swift build")
            try await withSite { site in
                let sequencer = try await site.sequencer("--http", "127.0.0.1:0")
                let desks = [
                    try await desk("desk-1", "ticket-desk", of: sequencer, site),
                    try await desk("desk-2", "ticket-desk", of: sequencer, site),
                ]
                let gateway = try site.start(
                    ["--json", "--http", "127.0.0.1:0", "--connect", sequencer.address],
                    program: "ticket-gateway")
                let ready = try await site.event("ready", of: gateway)
                let http = try #require(ready[key: "http"]?.string)
                for step in sales {
                    try await step.check(site, sequencer, names: [("127.0.0.1:8080", http)])
                }

                // The new program judges the store while the old one has it.
                let upgraded = Tool.built("ticket-desk-upgraded")
                try await upgrade[0].check(
                    site, sequencer, names: [(".build/debug/ticket-desk", upgraded)])
                for child in desks + [gateway] {
                    child.signal(SIGTERM)
                    _ = try await child.end()
                }
                _ = try await desk("desk-1", "ticket-desk-upgraded", of: sequencer, site)
                _ = try await desk("desk-2", "ticket-desk-upgraded", of: sequencer, site)
                for step in upgrade.dropFirst() { try await step.check(site, sequencer) }

                let metrics = try #require(sequencer.ready[key: "http"]?.string)
                let count = try await Tool.outcome(
                    of: try site.start(
                        [],
                        behind: [
                            "/bin/sh", "-c",
                            look[2].command.replacingOccurrences(
                                of: "127.0.0.1:7480", with: metrics),
                        ]))
                #expect(count.output.first.flatMap { Int($0) } ?? 0 > 10)
            }
        }

        private func desk(
            _ name: String, _ program: String, of sequencer: RunningSequencer, _ site: Site
        ) async throws -> Child {
            let child = try site.start(
                ["--name", name, "--connect", sequencer.address], program: program)
            _ = try await child.output.first { $0.contains(" \(name) is ready: ") }
            return child
        }
    }
}
