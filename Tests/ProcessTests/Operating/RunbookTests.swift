#if os(Linux)
    import Conflux
    import Foundation
    import Testing

    extension ProcessTests {
        /// Every command of the runbook, section by section.
        struct RunbookTests {
            @Test func `every section with commands has a scenario, and every exception a command`()
                throws
            {
                let sections = try Runbook.sections().filter { !$0.commands.isEmpty }
                #expect(
                    sections.map(\.anchor).sorted() == Scenario.allCases.map(\.rawValue).sorted())
                #expect(try Runbook.needlessExceptions().isEmpty)
            }

            @Test func `the runbook explains every alert`() throws {
                let text = try Deployment.text(Runbook.file)
                let alerts = try Deployment.text("deploy/monitoring/alerts.yaml")
                    .matches(of: /- alert: (\w+)/).map { String($0.1) }
                try #require(!alerts.isEmpty)
                for alert in alerts { #expect(text.contains("`\(alert)`"), "\(alert)") }
            }

            @Test(.timeLimit(.minutes(3)), arguments: Scenario.allCases)
            func `a section's commands do what it says`(scenario: Scenario) async throws {
                try await scenario.run()
            }

            @Test(.timeLimit(.minutes(3)))
            func `a sequencer that runs on during a restore stops before its next receipt`()
                async throws
            {
                try await withOperated(Scenario.restore.rawValue) {
                    try await Scenario.restore.restoreUnstopped($0)
                }
            }
        }
    }

    /// The sections of the runbook that have commands.
    enum Scenario: String, CaseIterable, Sendable {
        case install, sizing, backup, restore, divergence, upgrade
        case firstSetUp = "first-set-up"
        case whatToWatch = "what-to-watch"
        case diskFull = "disk-full"
        case diskLost = "disk-lost"
        case changedLog = "a-changed-log"
        case poisonedEntry = "poisoned-entry"
        case slowNodes = "slow-nodes"
        case keyRotation = "key-rotation"
        case movingTheSequencer = "moving-the-sequencer"
        case noSequencer = "no-sequencer"

        func run() async throws {
            switch self {
            case .install: try await withOperated(rawValue) { try await install($0) }
            case .sizing: try await withOperated(rawValue) { try await sizing($0) }
            case .backup: try await withOperated(rawValue) { try await backup($0) }
            case .restore: try await withOperated(rawValue) { try await restore($0) }
            case .upgrade: try await withOperated(rawValue) { try await upgrade($0) }
            case .firstSetUp: try await onNetwork()
            case .whatToWatch: try await withOperated(rawValue) { try await whatToWatch($0) }
            case .diskFull: try await withOperated(rawValue) { try await diskFull($0) }
            case .diskLost: try await withOperated(rawValue) { try await diskLost($0) }
            case .changedLog: try await withOperated(rawValue) { try await changedLog($0) }
            case .slowNodes: try await withOperated(rawValue) { try await slowNodes($0) }
            case .keyRotation: try await withOperated(rawValue) { try await keyRotation($0) }
            case .movingTheSequencer: try await withOperated(rawValue) { try await moving($0) }
            case .noSequencer: try await withOperated(rawValue) { try await noSequencer($0) }
            case .divergence:
                let workers = ["alpha", "unordered"].map { (name: $0, program: "VaryingWorker") }
                try await withOperated(rawValue, workers: workers) { try await divergence($0) }
            case .poisonedEntry:
                let workers = [(name: "alpha", program: "TrappingWorker")]
                try await withOperated(rawValue, workers: workers) { try await poisonedEntry($0) }
            }
        }

        // MARK: The output of `conflux`

        /// Whether `conflux status` shows these nodes as live and without a lag.
        func areLive(_ nodes: [String]) -> (String) -> Bool {
            { text in
                nodes.allSatisfy { node in
                    text.split(separator: "\n").contains {
                        $0.hasPrefix("\(node) ") && $0.contains(/\blive +0\b/)
                    }
                }
            }
        }

        /// Whether `conflux observe counter` shows this count at both nodes.
        func isCount(_ count: Int) -> (String) -> Bool {
            { text in
                let lines = text.split(separator: "\n")
                return lines.count == 2
                    && lines.allSatisfy { $0.hasSuffix(#": {"count":\#(count)}"#) }
            }
        }
    }
#endif
