import Conflux

/// The same state in a third program. It can host a store of the second version, and not of the first one.
struct NewestJournal: Model {
    static let name = "journal"
    static let schemaVersion = 3
    static let oldestSchemaVersion = 2

    enum Action: Codable, Sendable {
        case write(process: Int, index: Int)
        case refuse(process: Int, index: Int)
        case sign(process: Int, index: Int)
        case title(process: Int, index: Int)

        /// The action as the second program has it.
        var former: NewerJournal.Action {
            switch self {
            case .write(let process, let index): .write(process: process, index: index)
            case .refuse(let process, let index): .refuse(process: process, index: index)
            case .sign(let process, let index), .title(let process, let index):
                .sign(process: process, index: index)
            }
        }
    }

    static func schemaVersion(of action: Action) -> Int {
        switch action {
        case .title: 3
        case .sign: 2
        case .write, .refuse: 1
        }
    }

    private var journal = NewerJournal()
    private var titles = 0
    /// A value from the time of the migration, as in the second program.
    private var former = 0

    static func migrate(_ old: SnapshotReader, from version: Int) throws -> NewestJournal {
        var newest = NewestJournal()
        newest.journal =
            try version < 2
            ? NewerJournal.migrate(old, from: version) : old.decode(NewerJournal.self)
        newest.former = try 7 + MigrationFault.strike()
        return newest
    }

    static func revert(
        _ newest: NewestJournal, to version: Int
    ) throws -> any Encodable & Sendable { newest.journal }

    /// Since version 3, every seventh signature of a process is refused, too.
    func check(_ action: Action, _ context: ActionContext) throws {
        if case .sign(_, let index) = action, context.schemaVersion >= 3, index % 7 == 6 {
            throw Journal.Refused()
        }
        try journal.check(action.former, context)
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        journal.apply(action.former, context)
        if case .title = action { titles += 1 }
    }
}

extension SimulatedState {
    /// A state that reveals every loss, duplication and swap of entries. There are three programs of it.
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
        let newest = replicated(ModelState<NewestJournal>.self) { place, random in
            switch random.int(in: 0...9) {
            case 0: .refuse(process: place.process, index: place.index)
            case 1..<4: .sign(process: place.process, index: place.index)
            case 4..<6: .title(process: place.process, index: place.index)
            default: .write(process: place.process, index: place.index)
            }
        }
        state.newer = [newer, newest]
        state.corrupt = { encoded in
            let text = String(checkedUTF8: encoded)
            let spoilt = text.replacing(/"faults":([0-9]+)/) { match in
                "\"faults\":\((Int(match.1) ?? 0) + 1_000)"
            }
            return Array(spoilt.utf8)
        }
        return state
    }()
}
