import Foundation
import Testing

/// The alert rules and the dashboard.
struct AlertTests {
    private static let rules = "deploy/monitoring/alerts.yaml"
    private static let board = "deploy/monitoring/board.json"
    private static let metrics = "docs/monitoring.md"
    private static let runbook = "docs/operating.md"
    /// Where the package has the documents.
    private static let installed = "file:///usr/share/doc/conflux"

    @Test(
        .enabled(
            if: Deployment.has("promtool"), "promtool is not installed: Debian's prometheus has it")
    )
    func `Prometheus accepts the alert rules`() async throws {
        let outcome = try await Deployment.run(
            "promtool", "check", "rules", "--lint-fatal", Deployment.path(Self.rules))
        #expect(outcome.end == .exited(0), "\(outcome.message)")
    }

    @Test func `every alert has a summary and a runbook`() throws {
        let alerts = try Deployment.text(Self.rules).split(separator: "- alert: ").dropFirst()
        try #require(alerts.count >= 10)
        for alert in alerts {
            let name = alert.prefix { !$0.isNewline }
            #expect(alert.contains("summary: \""), "\(name)")
            #expect(alert.contains("runbook_url: \(Self.installed)/\(Self.runbook)#"), "\(name)")
            #expect(alert.contains(/severity: (critical|warning|info)}/), "\(name)")
        }
    }

    @Test(.enabled(if: Deployment.isFile(Deployment.path(runbook)), "there is no runbook"))
    func `every alert's runbook exists`() throws {
        let headings = try Deployment.text(Self.runbook).split(separator: "\n")
            .filter { $0.hasPrefix("#") }
            .map { heading in
                String(
                    heading.drop { $0 == "#" || $0 == " " }.lowercased()
                        .filter { $0.isLetter || $0.isNumber || " -".contains($0) }
                        .map { $0 == " " ? "-" : $0 })
            }
        for match in try Deployment.text(Self.rules).matches(of: /operating\.md#([a-z-]+)/) {
            #expect(headings.contains(String(match.1)), "\(match.1)")
        }
    }

    @Test(.enabled(if: Deployment.isFile(Deployment.path(metrics)), "there are no metrics"))
    func `every metric in the files exists in the programs`() throws {
        let known = Set(
            try Deployment.text(Self.metrics).matches(of: /`(conflux_[a-z_]+)`/).map { $0.1 })
        for file in [Self.rules, Self.board] {
            for match in try Deployment.text(file).matches(of: /conflux_[a-z_]+/) {
                let name = match.0.replacing(/_bucket$/, with: "")
                #expect(known.contains { $0 == name }, "\(file): \(name)")
            }
        }
    }

    @Test func `the dashboard is JSON, and each panel has a query`() throws {
        struct Board: Decodable {
            struct Panel: Decodable {
                struct Target: Decodable { let expr: String }
                let title: String
                let targets: [Target]
            }
            let panels: [Panel]
        }
        let board = try JSONDecoder().decode(
            Board.self, from: Data(try Deployment.text(Self.board).utf8))
        #expect(board.panels.count >= 10)
        for panel in board.panels {
            #expect(
                !panel.targets.isEmpty && panel.targets.allSatisfy { $0.expr.contains("conflux_") })
        }
    }
}
