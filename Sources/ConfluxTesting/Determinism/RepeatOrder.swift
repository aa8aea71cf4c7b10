import Conflux
import ConfluxThreads
import ConfluxVocabulary
import Foundation

/// The order to a child process: to commit the actions of one check, and to end.
struct RepeatOrder {
    static let folderVariable = "CONFLUX_TESTING_REPEAT_FOLDER"
    static let keyVariable = "CONFLUX_TESTING_REPEAT_KEY"
    static let indexVariable = "CONFLUX_TESTING_REPEAT_INDEX"
    static let kindVariable = "CONFLUX_TESTING_REPEAT_KIND"

    /// How a process differs from the others, apart from its environment.
    enum Kind: String {
        /// Not at all.
        case plain
        /// It commits more than a second later.
        case late
        /// It goes on in a new store, loaded from the snapshot, after each comparison.
        case restored
    }

    /// Identifies the check.
    let key: String
    private let files: RepeatFiles
    private let index: Int
    private let kind: Kind

    /// The order to this process; nil in the process that runs the tests.
    static var current: RepeatOrder? {
        func variable(_ name: String) -> String? {
            getenv(name).flatMap { try? String(utf8CString: $0) }
        }
        guard let folder = variable(folderVariable), let key = variable(keyVariable),
            let index = variable(indexVariable).flatMap({ Int($0) }),
            let kind = variable(kindVariable).flatMap({ Kind(rawValue: $0) })
        else { return nil }
        return RepeatOrder(
            key: key, files: RepeatFiles(folder: URL(fileURLWithPath: folder)), index: index,
            kind: kind)
    }

    /// How much later the late process commits: long enough for a clock of whole seconds to differ.
    private static let lateness = Duration.milliseconds(1_200)

    /// Commits the actions, writes the state's history to a file, and ends the process.
    func carryOut<State: ReplicatedState>(as state: State.Type) -> Never {
        do {
            if kind == .late {
                // It waits only for time to pass.
                Latch().wait(for: Self.lateness)
            }
            let bytes = Array(try Data(contentsOf: files.work))
            let work = try CanonicalCoder().decode(Work<State>.self, from: bytes)
            try Data().write(to: files.progress(index))
            let progress = try FileHandle(forWritingTo: files.progress(index))
            let history = try work.history(isRestored: kind == .restored) { step in
                // If it traps, this says at which action. A failed write only affects a message.
                try? progress.seek(toOffset: 0)
                try? progress.write(contentsOf: Data("\(step)".utf8))
            }
            try Data(CanonicalCoder().encode(history)).write(
                to: files.history(index), options: .atomic)
            exit(0)
        } catch {
            let message = (error as? CheckFailure)?.message ?? String(describing: error)
            print("the actions could not be committed: \(message)")
            exit(1)
        }
    }
}

/// The files that the processes of one check share.
struct RepeatFiles {
    let folder: URL

    var work: URL { folder.appendingPathComponent("work.json") }
    var list: URL { folder.appendingPathComponent("list") }
    func history(_ index: Int) -> URL { folder.appendingPathComponent("history.\(index)") }
    func progress(_ index: Int) -> URL { folder.appendingPathComponent("progress.\(index)") }
    func output(_ index: Int) -> URL { folder.appendingPathComponent("output.\(index)") }
}
