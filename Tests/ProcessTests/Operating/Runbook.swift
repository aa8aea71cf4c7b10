import Foundation
import Testing

/// The commands that docs/operating.md tells an operator to type.
enum Runbook {
    static let file = "docs/operating.md"

    struct Section: Sendable {
        /// The heading, in the form that links use.
        let anchor: String
        /// The texts after `$ `, in order.
        var commands: [String] = []
    }

    /// The sections, each from its heading to the next one.
    static func sections() throws -> [Section] {
        var sections: [Section] = []
        for line in try Deployment.text(file).split(separator: "\n") {
            if line.hasPrefix("## ") {
                let title = line.dropFirst(3).lowercased().map { $0 == " " ? "-" : $0 }
                sections.append(Section(anchor: String(title)))
            } else if let match = line.firstMatch(of: /^ {4}\$ (.+)$/), !sections.isEmpty {
                sections[sections.count - 1].commands.append(String(match.1))
            }
        }
        return sections
    }

    static func section(_ anchor: String) throws -> Section {
        try #require(try sections().first { $0.anchor == anchor }, "\(file) has no #\(anchor)")
    }

    // MARK: Commands that no test runs

    /// The beginnings of commands that no test runs, and the reasons.
    private static let exceptions = [
        ("sudo apt install ", "it needs root; PackageTests installs the package into a folder"),
        ("sudo systemctl daemon-reload", "it needs systemd"),
        ("sudo systemctl enable --now conflux-backup.timer", "it needs systemd"),
        ("systemctl status ", "it needs systemd"),
        ("journalctl -u conflux-worker", "it needs systemd; JournalTests runs the sequencer's"),
        (
            "journalctl -u conflux-sequencer",
            "it needs systemd; JournalTests runs it with a journal"
        ),
        ("sudo chown ", "it needs root"),
        ("top ", "it shows the machine, and belongs to a package that may not be there"),
    ]

    static func isException(_ command: String) -> Bool {
        exceptions.contains { command.hasPrefix($0.0) }
            || command.hasPrefix("curl ") && !Deployment.has("curl")
    }

    /// The exceptions that match no command of the runbook.
    static func needlessExceptions() throws -> [String] {
        let commands = try sections().flatMap(\.commands)
        return exceptions.map(\.0).filter { start in !commands.contains { $0.hasPrefix(start) } }
    }
}
