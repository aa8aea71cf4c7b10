import Conflux
import ConfluxThreads
import Foundation

/// What another process of this program is told: to commit the actions of one check, and to end.
struct RepeatOrder {
    static let folderVariable = "CONFLUX_TESTING_REPEAT_FOLDER"
    static let keyVariable = "CONFLUX_TESTING_REPEAT_KEY"
    static let indexVariable = "CONFLUX_TESTING_REPEAT_INDEX"
    static let kindVariable = "CONFLUX_TESTING_REPEAT_KIND"

    /// In what a process differs from the others, besides all that processes differ in.
    enum Kind: String {
        /// In nothing.
        case plain
        /// It commits later, by more than a second.
        case late
        /// It loads the store from its snapshots.
        case restored
    }

    /// Which check is meant.
    let key: String
    private let files: RepeatFiles
    private let index: Int
    private let kind: Kind

    /// The order of this process; nil if it has none, as it is where the tests run.
    static var current: RepeatOrder? {
        let environment = ProcessInfo.processInfo.environment
        guard let folder = environment[folderVariable], let key = environment[keyVariable],
            let index = environment[indexVariable].flatMap({ Int($0) }),
            let kind = environment[kindVariable].flatMap({ Kind(rawValue: $0) })
        else { return nil }
        return RepeatOrder(
            key: key, files: RepeatFiles(folder: URL(fileURLWithPath: folder)), index: index,
            kind: kind)
    }

    /// How much later a process commits that does so late: enough for a clock of whole seconds.
    private static let lateness = Duration.milliseconds(1_200)

    /// Commits the actions, writes down what becomes of the state, and ends the process.
    func carryOut<State: ReplicatedState>(as state: State.Type) -> Never {
        do {
            if kind == .late {
                // Nothing is waited for but that time passes.
                Latch().wait(for: Self.lateness)
            }
            let bytes = Array(try Data(contentsOf: files.work))
            let work = try CanonicalCoder().decode(Work<State>.self, from: bytes)
            try Data().write(to: files.progress(index))
            let progress = try FileHandle(forWritingTo: files.progress(index))
            let history = try work.history(isRestored: kind == .restored) { step in
                // Should it trap, this says where. What can't be written is missed in a message only.
                try? progress.seek(toOffset: 0)
                try? progress.write(contentsOf: Data("\(step)".utf8))
            }
            try Data(history.bytes).write(to: files.history(index), options: .atomic)
            exit(0)
        } catch {
            let message = (error as? CheckFailure)?.message ?? String(describing: error)
            print("the actions could not be committed: \(message)")
            exit(1)
        }
    }
}

/// What processes of one check have in common.
struct RepeatFiles {
    let folder: URL

    var work: URL { folder.appendingPathComponent("work.json") }
    var list: URL { folder.appendingPathComponent("list") }
    func history(_ index: Int) -> URL { folder.appendingPathComponent("history.\(index)") }
    func progress(_ index: Int) -> URL { folder.appendingPathComponent("progress.\(index)") }
    func output(_ index: Int) -> URL { folder.appendingPathComponent("output.\(index)") }
}
