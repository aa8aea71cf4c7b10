import ConfluxNode

/// The first version of a ledger.
struct OldLedger: Model {
    static let name = "ledger"
    var total = 0

    enum Action: Codable, Sendable { case add(amount: Int, padding: String?) }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        if case .add(let amount, _) = action { total += amount }
    }
}

/// The ledger of a newer program: it has a name for each sum, and one more action.
struct NewLedger: Model {
    static let name = "ledger"
    static let schemaVersion = 2
    var sums: [String: Int] = ["total": 0]

    enum Action: Codable, Sendable {
        case add(amount: Int, padding: String?)
        case book(amount: Int, under: String)
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .add(let amount, _): sums["total", default: 0] += amount
        case .book(let amount, let name): sums[name, default: 0] += amount
        }
    }

    static func migrate(_ old: SnapshotReader, from version: Int) throws -> NewLedger {
        NewLedger(sums: ["total": try old.decode(OldLedger.self).total])
    }
}
