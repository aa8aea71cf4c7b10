import ConfluxSimulation

/// The violations of a campaign in groups, since many seeds may show the same mistake.
struct Findings: Sendable {
    /// Violations of one promise with the same message, apart from the numbers in it.
    struct Group: Sendable {
        /// The promise and the message, with `#` for each number.
        var pattern: String
        /// How many seeds showed it.
        var count = 0
        /// The reports with the lowest seeds, ascending.
        var reports: [SimulationReport] = []
    }

    /// The most reports of a group that are kept.
    private static let reportsMax = 5

    private var groups: [String: Group] = [:]

    var isEmpty: Bool { groups.isEmpty }

    /// How many seeds had a violation.
    var count: Int { groups.values.reduce(0) { $0 + $1.count } }

    /// The groups, most frequent first.
    var sorted: [Group] {
        groups.values.sorted { ($1.count, $0.pattern) < ($0.count, $1.pattern) }
    }

    /// The report with the lowest seed.
    var first: SimulationReport? {
        groups.values.compactMap(\.reports.first).min { $0.seed < $1.seed }
    }

    mutating func add(_ report: SimulationReport) {
        guard let violation = report.violation else { return }
        let pattern = "\(violation.promise): \(Self.pattern(of: violation.message))"
        var group = groups[pattern] ?? Group(pattern: pattern)
        group.count += 1
        let place = group.reports.firstIndex { $0.seed > report.seed } ?? group.reports.count
        group.reports.insert(report, at: place)
        if group.reports.count > Self.reportsMax { group.reports.removeLast() }
        groups[pattern] = group
    }

    /// A message with `#` for each number.
    static func pattern(of message: String) -> String {
        message.replacing(/[0-9]+/, with: "#")
    }
}
