import ConfluxNode
import Foundation

/// The first version of a ledger.
struct OldLedger: Model {
    static let name = "ledger"
    var total = 0

    enum Action: Codable, Sendable { case add(amount: Int, padding: String?) }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        if case .add(let amount, _) = action { total += amount }
    }
}

/// The ledger of a newer program: it has a name for each sum, one more action, and a rule: it refuses sums above 100.
/// Nodes whose names begin with `new-both` can host the old version, too.
struct NewLedger: Model {
    static let name = "ledger"
    static let schemaVersion = 2
    static let oldestSchemaVersion = begins("new-both") ? 1 : 2
    var sums: [String: Int] = ["total": 0]

    enum Action: Codable, Sendable {
        case add(amount: Int, padding: String?)
        case book(amount: Int, under: String)
    }

    struct TooMuch: Error {}

    static func schemaVersion(of action: Action) -> Int {
        if case .book = action { 2 } else { oldestSchemaVersion }
    }

    func check(_ action: Action, _ context: ActionContext) throws {
        if context.schemaVersion >= 2, case .add(let amount, _) = action, amount > 100 {
            throw TooMuch()
        }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .add(let amount, _): sums["total", default: 0] += amount
        case .book(let amount, let name): sums[name, default: 0] += amount
        }
    }

    /// Nodes with some names make mistakes.
    static func migrate(_ old: SnapshotReader, from version: Int) throws -> NewLedger {
        if begins("new-throwing") { throw TooMuch() }
        if begins("new-trapping") || begins("new-both-trapping") {
            fatalError("this migration traps")
        }
        if begins("new-hanging") { while true { pause() } }
        if begins("new-other") {
            return NewLedger(sums: ["total": try old.decode(OldLedger.self).total + 1])
        }
        let total = try old.decode(OldLedger.self).total
        // Typical mistakes of migrations.
        switch total {
        case unreadable: throw Unreadable()
        case trapping: fatalError("the total is \(total)")
        case endless:
            DispatchSemaphore(value: 0).wait()
            return NewLedger()
        case random: return NewLedger(sums: ["total": .random(in: 1...1_000_000_000)])
        case unordered:
            // Of a set, the order in one process is always the same.
            let first = Set((0..<100).map(String.init)).first ?? ""
            return NewLedger(sums: ["total": total, first: 1])
        default: return NewLedger(sums: ["total": total])
        }
    }

    private static let (unreadable, trapping, endless, random, unordered) = (11, 12, 13, 14, 15)

    private struct Unreadable: Error, CustomStringConvertible {
        var description: String { "the total is odd" }
    }

    static func revert(
        _ ledger: NewLedger, to version: Int
    ) throws -> any Encodable & Sendable {
        let total = ledger.sums["total"] ?? 0
        return OldLedger(total: begins("new-both-forgetful") ? 0 : total)
    }
}

func begins(_ prefix: String) -> Bool {
    CommandLine.arguments.contains { $0.hasPrefix(prefix) }
        || ProcessInfo.processInfo.environment["VARYING_NAME"]?.hasPrefix(prefix) == true
}
