import Foundation
import Testing

/// The systemd units in `deploy/`. ``PackageTests`` verifies them as they are installed.
struct UnitTests {
    /// The units, with the highest exposure that each may have by systemd's rating, from 0 to 100. A backup runs as root.
    private static let units = [
        ("conflux-sequencer.service", 15), ("conflux-worker@.service", 15),
        ("conflux-backup.service", 20),
    ]

    @Test(
        .enabled(if: Deployment.has("systemd-analyze"), "systemd is not installed"),
        arguments: units)
    func `a unit has a low exposure`(unit: String, exposureMax: Int) async throws {
        let outcome = try await Deployment.run(
            "systemd-analyze", "security", "--offline=true", "--no-pager",
            "--threshold=\(exposureMax)", Deployment.path("deploy/systemd/\(unit)"))
        #expect(
            outcome.end == .exited(0),
            "\(outcome.message)\(outcome.output.suffix(2).joined(separator: "\n"))")
    }

    /// An unknown variable would have no effect, and nothing would report it.
    @Test func `every option and variable in the files is known to the program`() async throws {
        var known: Set<String> = []
        for command in ["sequencer", "worker"] {
            let help = try await Tool.outcome(of: try Tool.start([command, "--help"]))
            let text = help.output.joined(separator: " ")
            known.formUnion(text.matches(of: /--[a-z][a-z-]+|CONFLUX_[A-Z_]+/).map { String($0.0) })
        }
        try #require(known.contains("--bind") && known.contains("CONFLUX_SERVER_KEY"))
        // A program that was built without the metrics endpoint doesn't have these.
        if !known.contains("CONFLUX_HTTP") {
            known.formUnion(["CONFLUX_HTTP", "CONFLUX_HTTP_TOKEN"])
        }
        for file in try Deployment.files(in: "deploy") where !file.hasSuffix(".md") {
            for line in try Deployment.text(file).split(separator: "\n") {
                let variables = line.matches(of: /CONFLUX_[A-Z_]*[A-Z]/).map { String($0.0) }
                let isCommand = line.contains(
                    /ExecStart=.+|^#?OPTIONS=|^ +(command|args): \[(sequencer|worker)|^ +- --/)
                let options =
                    isCommand ? line.matches(of: /--[a-z][a-z-]+/).map { String($0.0) } : []
                for name in variables + options {
                    #expect(known.contains(name), "\(file): \(name)")
                }
            }
        }
    }
}
