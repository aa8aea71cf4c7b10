import Foundation
import Testing

extension ProcessTests {
    /// The commands that docs/tutorial.md tells its reader to type.
    struct TutorialTests {
        @Test func `the command line shows what the tutorial says`() async throws {
            let steps = try Self.steps(of: "## 8. ")
            try #require(steps.count >= 5)
            try await withSite { site in
                let sequencer = try await site.sequencer()
                for name in ["alpha", "beta"] {
                    let worker = try site.start(
                        ["--name", name, "--connect", sequencer.address], program: "poll-worker")
                    _ = try await worker.output.first { $0.contains(" \(name) is ready: ") }
                }
                for step in steps {
                    let deadline = ContinuousClock.now + .seconds(60)
                    var told: [String]
                    // The receipt of `applied` comes from one worker. The other one may apply the action later.
                    repeat {
                        told = try await Self.told(by: step.command, site, sequencer)
                    } while step.command.contains("observe") && told != step.shown
                        && ContinuousClock.now < deadline
                    #expect(told == step.shown, "\(step.command)")
                }
            }
        }

        /// A command of the page, and the output that the page shows for it.
        private struct Step {
            var command: String
            var shown: [String] = []
        }

        private static func steps(of heading: String) throws -> [Step] {
            let sections = try Deployment.text("docs/tutorial.md").components(separatedBy: "\n## ")
            let section = try #require(sections.first { "## \($0)".hasPrefix(heading) })
            var steps: [Step] = []
            for line in section.split(separator: "\n") where line.hasPrefix("    ") {
                let text = line.dropFirst(4)
                if text.hasPrefix("$ ") {
                    steps.append(Step(command: String(text.dropFirst(2))))
                } else if !steps.isEmpty {
                    steps[steps.count - 1].shown.append(withoutNumbers(String(text)))
                }
            }
            return steps
        }

        private static func told(
            by command: String, _ site: Site, _ sequencer: RunningSequencer
        ) async throws -> [String] {
            let shell = ["/bin/sh", "-c", #"conflux() { "$0" "$@"; }; "# + command]
            let child = try site.start(
                [], behind: shell, variables: ["CONFLUX_CONNECT": sequencer.address])
            let outcome = try await Tool.outcome(of: child)
            return (outcome.output + outcome.errors).map(withoutNumbers)
        }

        /// Entries have different numbers in each run.
        private static func withoutNumbers(_ line: String) -> String {
            line.replacing(/(entry|Entry|at) \d+/) { "\($0.1) N" }
        }
    }
}
