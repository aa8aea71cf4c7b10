import Foundation
import Testing

extension ProcessTests {
    /// The commands that docs/tutorial.md tells its reader to type.
    struct TutorialTests {
        @Test func `the command line shows what the tutorial says`() async throws {
            let steps = try PageStep.all(under: "## 8. ", of: "docs/tutorial.md")
            try #require(steps.count >= 5)
            try await withSite { site in
                let sequencer = try await site.sequencer()
                for name in ["alpha", "beta"] {
                    let worker = try site.start(
                        ["--name", name, "--connect", sequencer.address], program: "poll-worker")
                    _ = try await worker.output.first { $0.contains(" \(name) is ready: ") }
                }
                for step in steps { try await step.check(site, sequencer) }
            }
        }
    }
}
