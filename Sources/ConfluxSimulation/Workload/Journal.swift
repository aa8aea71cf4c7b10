import Conflux
import ConfluxVocabulary

/// The default state of simulations. It remembers the last entry of each writer, so that a duplicated or
/// swapped entry changes it permanently.
struct Journal: Model {
    static let name = "journal"

    enum Action: Codable, Sendable {
        case write(process: Int, index: Int)
        case refuse(process: Int, index: Int)
    }

    struct Refused: Error {}

    var count = 0
    var chain: UInt64 = 0
    var last: [String: Int] = [:]
    /// How many entries came twice or in the wrong order.
    var faults = 0

    func check(_ action: Action, _ context: ActionContext) throws {
        if case .refuse = action { throw Refused() }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        guard case .write(let process, let index) = action else { return }
        write(process: process, index: index, context)
    }

    mutating func write(process: Int, index: Int, _ context: ActionContext) {
        let key = String(process)
        if let former = last[key], former >= index { faults += 1 }
        last[key] = index
        if last.count > 16 { last = [key: index] }
        count += 1
        var random = context.random
        var mixer = SplitMix64(
            seed: chain ^ UInt64(process) << 32 ^ UInt64(index) ^ random.next()
                ^ UInt64(bitPattern: context.timestamp.rawValue))
        chain = mixer.next()
    }
}

/// The same state in a newer program, with another action, another property and another rule. It can host a store of the
/// former version.
struct NewerJournal: Model {
    static let name = "journal"
    static let schemaVersion = 2
    static let oldestSchemaVersion = 1

    enum Action: Codable, Sendable {
        case write(process: Int, index: Int)
        case refuse(process: Int, index: Int)
        case sign(process: Int, index: Int)
    }

    static func schemaVersion(of action: Action) -> Int {
        if case .sign = action { 2 } else { 1 }
    }

    private var pages = Journal()
    private var signatures: Int
    /// A value from the time of the migration: a replica that migrates twice, or differently, has another one.
    private var former: Int

    init() {
        signatures = 0
        former = 0
    }

    static func migrate(_ old: SnapshotReader, from version: Int) throws -> NewerJournal {
        var journal = NewerJournal()
        journal.pages = try old.decode(Journal.self)
        journal.former = try journal.pages.count + 1 + MigrationFault.strike()
        return journal
    }

    static func revert(
        _ journal: NewerJournal, to version: Int
    ) throws -> any Encodable & Sendable { journal.pages }

    /// Since version 2, every fifth write of a process is refused, too.
    func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .refuse: throw Journal.Refused()
        case .write(_, let index) where context.schemaVersion >= 2 && index % 5 == 4:
            throw Journal.Refused()
        case .write, .sign: break
        }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .write(let process, let index):
            pages.write(process: process, index: index, context)
        case .sign(let process, let index):
            pages.write(process: process, index: index, context)
            signatures += 1
        case .refuse: break
        }
    }
}
