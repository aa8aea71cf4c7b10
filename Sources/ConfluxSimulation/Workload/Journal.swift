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

/// The same state in a newer program, with another action and another property.
struct NewerJournal: Model {
    static let name = "journal"
    static let schemaVersion = 2

    enum Action: Codable, Sendable {
        case write(process: Int, index: Int)
        case refuse(process: Int, index: Int)
        case sign(process: Int, index: Int)
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
        journal.former = journal.pages.count + 1
        return journal
    }

    func check(_ action: Action, _ context: ActionContext) throws {
        if case .refuse = action { throw Journal.Refused() }
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

extension SimulatedState {
    /// A state that reveals every loss, duplication and swap of entries.
    public static let journal = {
        var state = replicated(ModelState<Journal>.self) { place, random in
            random.chance(0.1)
                ? .refuse(process: place.process, index: place.index)
                : .write(process: place.process, index: place.index)
        }
        let newer = replicated(ModelState<NewerJournal>.self) { place, random in
            random.chance(0.1)
                ? .refuse(process: place.process, index: place.index)
                : random.chance(0.4)
                    ? .sign(process: place.process, index: place.index)
                    : .write(process: place.process, index: place.index)
        }
        state.newer = [newer]
        state.corrupt = { encoded in
            let text = String(checkedUTF8: encoded)
            let spoilt = text.replacing(/"faults":([0-9]+)/) { match in
                "\"faults\":\((Int(match.1) ?? 0) + 1_000)"
            }
            return Array(spoilt.utf8)
        }
        state.newer[0].corrupt = state.corrupt
        return state
    }()
}
