import Conflux

/// Texts by row: a state of many small parts, whose size depends on the number of rows.
struct Ledger<Table: RowTable>: Model {
    static var name: String { "ledger" }

    private(set) var rows = Table()

    typealias Action = LedgerAction

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .set(let row, let text): rows[row] = text
        case .fill(let from, let to):
            for index in from..<to { rows[LedgerRow.name(index)] = LedgerRow.text(index) }
        }
    }
}

/// The collection of the rows. All tables have the same encoding.
protocol RowTable: Codable, Sendable {
    init()
    var count: Int { get }
    subscript(row: String) -> String? { get set }
}

extension [String: String]: RowTable {}
extension TreeMap<String, String>: RowTable {}

/// The kinds of tables.
enum TableKind: String, Codable {
    case dictionary
    case tree
}

/// About 90 bytes of JSON, except for `fill`.
enum LedgerAction: Codable, Sendable {
    case set(row: String, to: String)
    /// Sets the rows from one number up to another.
    case fill(from: Int, to: Int)

    /// The action that sets the next row in turn.
    static func turn(_ index: Int, rows: Int) -> LedgerAction {
        .set(row: LedgerRow.name(index % rows), to: LedgerRow.text(index))
    }
}

/// The names and texts of rows.
enum LedgerRow {
    /// The bytes of a row in canonical JSON.
    static let bytes = 63

    static func name(_ index: Int) -> String { "r" + padded(index, to: 8) }
    static func text(_ index: Int) -> String { padded(index, to: 48) }

    private static func padded(_ number: Int, to count: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
    }
}
