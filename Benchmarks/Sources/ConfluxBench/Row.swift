import Foundation

/// One figure of a workload: ours, the partner's, and their ratio in each round.
struct Row: Codable, Sendable {
    let workload: String
    let name: String
    let unit: String
    let conflux: Spread
    /// Nil if the figure has no partner.
    let partner: Spread?
    /// Our value, divided by the partner's.
    let ratio: Spread?
    let isHigherBetter: Bool

    /// Takes one value of ours for each round, and the partner's values of the same rounds.
    init(
        _ workload: String, _ name: String, _ unit: String, _ ours: [Double], _ theirs: [Double],
        isHigherBetter: Bool = false
    ) {
        self.workload = workload
        self.name = name
        self.unit = unit
        conflux = Spread(ours)
        partner = theirs.isEmpty ? nil : Spread(theirs)
        ratio = theirs.isEmpty ? nil : Spread(zip(ours, theirs).map { $0 / $1 })
        self.isHigherBetter = isHigherBetter
    }

    /// Makes a row for figures without a partner.
    init(_ workload: String, _ name: String, _ unit: String, alone ours: [Double]) {
        self.init(workload, name, unit, ours, [])
    }

    /// The row as one line of JSON with sorted keys.
    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }

    /// The row as a line of a table in Markdown.
    var line: String {
        let cells = [
            workload, name, unit, Self.text(conflux), Self.text(partner),
            Self.text(ratio, digits: 2),
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    static let heading = """
        | workload | what | unit | Conflux | partner | ratio |
        |---|---|---|---|---|---|
        """

    private static func text(_ spread: Spread?, digits: Int? = nil) -> String {
        guard let spread else { return "–" }
        if spread.min == spread.max { return number(spread.median, digits) }
        let texts = [spread.median, spread.min, spread.max].map { number($0, digits) }
        return "\(texts[0]) [\(texts[1])–\(texts[2])]"
    }
    private static func number(_ value: Double, _ digits: Int?) -> String {
        String(format: "%.\(digits ?? (value < 10 ? 2 : value < 1_000 ? 1 : 0))f", value)
    }
}
