import Foundation
import Testing

/// A command that a page tells its reader to type, and the output that the page shows for it.
struct PageStep {
    var command: String
    /// The lines, without what differs in each run.
    var shown: [String] = []

    /// The steps of a section.
    ///
    /// - Parameters:
    ///   - heading: How the section's heading begins, such as `## 8. `.
    ///   - page: The path of the page in the repository.
    /// - Returns: Its commands, in their order.
    /// - Throws: If there is no such section.
    static func all(under heading: String, of page: String) throws -> [PageStep] {
        let sections = try Deployment.text(page).components(separatedBy: "\n## ")
        let section = try #require(sections.first { "## \($0)".hasPrefix(heading) })
        var steps: [PageStep] = []
        for line in section.split(separator: "\n") where line.hasPrefix("    ") {
            let text = line.dropFirst(4)
            if text.hasPrefix("$ ") {
                steps.append(PageStep(command: String(text.dropFirst(2))))
            } else if !steps.isEmpty {
                steps[steps.count - 1].shown.append(same(String(text)))
            }
        }
        return steps
    }

    /// Types the command, and compares what it tells with the page. What is not there at once is asked for again: a
    /// receipt comes from one process, and others may apply the action later.
    ///
    /// - Parameters:
    ///   - site: The site.
    ///   - sequencer: The sequencer that `conflux` connects to.
    ///   - names: What the page calls programs and addresses, and what they are here.
    /// - Throws: If the command can't be typed, or takes too long.
    func check(
        _ site: Site, _ sequencer: RunningSequencer, names: [(page: String, here: String)] = []
    ) async throws {
        let typed = names.reduce(command) {
            $0.replacingOccurrences(of: $1.page, with: $1.here)
        }
        let isQuestion = ["observe", "log", "leases"].contains {
            command.hasPrefix("conflux \($0)")
        }
        let deadline = ContinuousClock.now + .seconds(60)
        var told: [String]
        repeat {
            let shell = ["/bin/sh", "-c", #"conflux() { "$0" "$@"; }; "# + typed]
            let child = try site.start(
                [], behind: shell, variables: ["CONFLUX_CONNECT": sequencer.address])
            let outcome = try await Tool.outcome(of: child)
            told = (outcome.output + outcome.errors).map(Self.same)
        } while isQuestion && told != shown && ContinuousClock.now < deadline
        #expect(told == shown, "\(command)")
    }

    /// Entries have different numbers in each run, and logs different names and times.
    private static func same(_ line: String) -> String {
        line.replacing(/(entry|Entry|at) \d+/) { "\($0.1) N" }
            .replacing(/"epoch":\d+/, with: "\"epoch\":E")
            .replacing(/"log":"[0-9a-f]+"/, with: "\"log\":\"L\"")
            .replacing(/"sequence":\d+/, with: "\"sequence\":N")
            .replacing(/\d{4}-\d\d-\d\dT[0-9:.]+Z/, with: "T")
            .replacing(/^\d+  T/, with: "N  T")
    }
}
