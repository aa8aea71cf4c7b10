import Conflux

/// Texts by row: a state of many small parts, whose size is a matter of how many rows it has.
struct Ledger: Model {
    static let name = "ledger"

    private(set) var rows: [String: String] = [:]

    /// About 90 bytes of JSON, but for the filling.
    enum Action: Codable, Sendable {
        case set(row: String, to: String)
        /// Sets the rows from one number up to another.
        case fill(from: Int, to: Int)

        /// What sets the row whose turn it is.
        static func turn(_ index: Int, rows: Int) -> Action {
            .set(row: Ledger.row(index % rows), to: Ledger.text(index))
        }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .set(let row, let text): rows[row] = text
        case .fill(let from, let to):
            for index in from..<to { rows[Self.row(index)] = Self.text(index) }
        }
    }

    /// The bytes of a row in canonical JSON.
    static let rowBytes = 63

    static func row(_ index: Int) -> String { "r" + padded(index, to: 8) }
    static func text(_ index: Int) -> String { padded(index, to: 48) }

    private static func padded(_ number: Int, to count: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
    }
}
