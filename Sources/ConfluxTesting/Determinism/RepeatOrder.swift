import Conflux
import Foundation

/// What another process of this program is told: to repeat the actions of one check, and to end.
struct RepeatOrder {
    static let folderVariable = "CONFLUX_TESTING_REPEAT_FOLDER"
    static let keyVariable = "CONFLUX_TESTING_REPEAT_KEY"
    static let indexVariable = "CONFLUX_TESTING_REPEAT_INDEX"

    /// Which check is meant.
    let key: String
    private let files: RepeatFiles
    private let index: Int

    /// The order of this process; nil if it has none, as it is where the tests run.
    static var current: RepeatOrder? {
        let environment = ProcessInfo.processInfo.environment
        guard let folder = environment[folderVariable], let key = environment[keyVariable],
            let index = environment[indexVariable].flatMap({ Int($0) })
        else { return nil }
        return RepeatOrder(
            key: key, files: RepeatFiles(folder: URL(fileURLWithPath: folder)), index: index)
    }

    /// Repeats the actions, writes down what the state becomes, and ends the process.
    func carryOut<State: ReplicatedState>(as state: State.Type) -> Never {
        do {
            let bytes = Array(try Data(contentsOf: files.work))
            let work = try CanonicalDecoder().decode(Work<State>.self, from: bytes)
            let history = try work.history(isRestored: false)
            try Data(history.bytes).write(to: files.history(index), options: .atomic)
            exit(0)
        } catch {
            let message = (error as? CheckFailure)?.message ?? String(describing: error)
            print("conflux testing: the actions could not be repeated: \(message)")
            exit(1)
        }
    }
}

/// What processes of one check have in common.
struct RepeatFiles {
    let folder: URL

    var work: URL { folder.appendingPathComponent("work.json") }
    func history(_ index: Int) -> URL { folder.appendingPathComponent("history.\(index)") }
    func output(_ index: Int) -> URL { folder.appendingPathComponent("output.\(index)") }
}

/// The folder of one check.
struct RepeatFolder {
    private let files: RepeatFiles
    private let key: String

    init(work: Work<some ReplicatedState>, key: String) throws(CheckFailure) {
        self.key = key
        files = RepeatFiles(
            folder: FileManager.default.temporaryDirectory
                .appendingPathComponent("conflux-testing-\(UUID().uuidString)"))
        do {
            try FileManager.default.createDirectory(
                at: files.folder, withIntermediateDirectories: true)
            try Data(try CanonicalEncoder().encode(work)).write(to: files.work)
        } catch {
            throw CheckFailure(message: "its actions can't be handed to other processes: \(error)")
        }
    }

    func remove() {
        try? FileManager.default.removeItem(at: files.folder)
    }

    /// Other places in which a process finds itself.
    private static let surroundings = [
        ["TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"],
        ["TZ": "America/St_Johns", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"],
        ["TZ": "Asia/Kathmandu", "LC_ALL": "ar_EG.UTF-8", "LANG": "ar_EG.UTF-8"],
    ]

    /// Has the actions repeated by other processes, at the same time.
    ///
    /// - Parameters:
    ///   - tests: Which tests they run.
    ///   - count: How many processes.
    ///   - timeout: How long each may take.
    ///   - isolation: The caller's actor.
    /// - Returns: What the state became in each.
    /// - Throws: ``CheckFailure`` when one of them did not come to the end.
    func run(
        _ tests: OnlyTest, count: Int, timeout: Duration,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(CheckFailure) -> [StateHistory] {
        let processes = try (0..<count).map { index throws(CheckFailure) in
            var environment = ProcessInfo.processInfo.environment
            // It would have all processes hash alike.
            environment["SWIFT_DETERMINISTIC_HASHING"] = nil
            // What ended it is said without it, too.
            environment["SWIFT_BACKTRACE"] = "enable=no"
            environment.merge(Self.surroundings[index % Self.surroundings.count]) { $1 }
            environment[RepeatOrder.folderVariable] = files.folder.path
            environment[RepeatOrder.keyVariable] = key
            environment[RepeatOrder.indexVariable] = String(index)
            return try OtherProcess(
                tests.program, tests.arguments, environment: environment,
                output: files.output(index))
        }
        var ends: [OtherProcess.End] = []
        for process in processes { ends.append(await process.end(within: timeout)) }
        return try ends.enumerated().map { index, end throws(CheckFailure) in
            guard let bytes = try? Data(contentsOf: files.history(index)) else {
                throw CheckFailure(message: excuse(end, index, timeout))
            }
            return StateHistory(bytes: Array(bytes))
        }
    }

    private func excuse(_ end: OtherProcess.End, _ index: Int, _ timeout: Duration) -> String {
        let how =
            switch end {
            case .exit(let code): "ended with exit code \(code)"
            case .signal(let number): "was ended by signal \(number)"
            case .late: "took longer than \(timeout), and was ended"
            }
        let output = (try? String(contentsOf: files.output(index), encoding: .utf8)) ?? ""
        let lines = output.split(separator: "\n")
        // A trap says why, and then where, in many lines.
        let traps = lines.filter { $0.contains("Fatal error") }.prefix(3)
        let last = (traps.isEmpty ? lines.suffix(20) : traps[...]).map { "    \($0)" }
        return """
            process \(index + 1), which was to repeat its actions, \(how) before it had done so. Does the \
            action itself end a process, or does the test not come to the check each time? It said:

            \(last.joined(separator: "\n"))
            """
    }
}
