import Conflux
import Foundation

/// The folder of one check, into which its processes write.
struct RepeatFolder {
    let files: RepeatFiles
    private let key: String

    /// Makes the folder.
    ///
    /// - Parameters:
    ///   - work: The actions to commit.
    ///   - key: Identifies the check.
    /// - Throws: ``CheckFailure`` if the work can't be written; then there is no folder.
    init(work: Work<some ReplicatedState>, key: String) throws(CheckFailure) {
        self.key = key
        files = RepeatFiles(
            folder: FileManager.default.temporaryDirectory
                .appendingPathComponent("conflux-testing-\(UUID().uuidString)"))
        do {
            let bytes = try CanonicalCoder().encode(work)
            try FileManager.default.createDirectory(
                at: files.folder, withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700])
            do {
                try Data(bytes).write(to: files.work)
            } catch {
                remove()
                throw error
            }
        } catch {
            throw CheckFailure(message: "its actions can't be handed to other processes: \(error)")
        }
    }

    func remove() {
        try? FileManager.default.removeItem(at: files.folder)
    }

    /// The time zones and locales in which the processes run.
    private static let surroundings = [
        ["TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"],
        ["TZ": "America/St_Johns", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"],
        ["TZ": "Asia/Kathmandu", "LC_ALL": "ar_EG.UTF-8", "LANG": "ar_EG.UTF-8"],
    ]

    /// Lets other processes commit the actions, all at the same time.
    ///
    /// - Parameters:
    ///   - tests: How to start them.
    ///   - kinds: The kind of each process.
    ///   - timeout: How long each may take.
    ///   - isolation: The caller's actor.
    /// - Returns: The state's history in each.
    /// - Throws: ``CheckFailure`` if one of them did not finish.
    func run(
        _ tests: OnlyTest, _ kinds: [RepeatOrder.Kind], timeout: Duration,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(CheckFailure) -> [StateHistory] {
        var processes: [OtherProcess] = []
        do {
            for (index, kind) in kinds.enumerated() {
                processes.append(try start(tests, kind, index, timeout))
            }
        } catch {
            for process in processes { process.kill() }
            throw error
        }
        var ends: [OtherProcess.End] = []
        for process in processes { ends.append(await process.end()) }
        return try ends.enumerated().map { index, end throws(CheckFailure) in
            guard let bytes = try? Data(contentsOf: files.history(index)),
                let history = try? CanonicalCoder().decode(StateHistory.self, from: bytes)
            else { throw CheckFailure(message: excuse(end, index, timeout)) }
            return history
        }
    }

    private func start(
        _ tests: OnlyTest, _ kind: RepeatOrder.Kind, _ index: Int, _ timeout: Duration
    ) throws(CheckFailure) -> OtherProcess {
        var environment = OtherEnvironment()
        // It would give all processes the same hash seeds.
        environment.set("SWIFT_DETERMINISTIC_HASHING", nil)
        // The reason for its end is printed without a backtrace, too.
        environment.set("SWIFT_BACKTRACE", "enable=no")
        for (name, value) in Self.surroundings[index % Self.surroundings.count] {
            environment.set(name, value)
        }
        environment.set(RepeatOrder.folderVariable, files.folder.path)
        environment.set(RepeatOrder.keyVariable, key)
        environment.set(RepeatOrder.indexVariable, String(index))
        environment.set(RepeatOrder.kindVariable, kind.rawValue)
        return try OtherProcess(
            tests.program, tests.arguments, environment: environment, output: files.output(index),
            timeout: timeout)
    }

    private func excuse(_ end: OtherProcess.End, _ index: Int, _ timeout: Duration) -> String {
        let progress = (try? String(contentsOf: files.progress(index), encoding: .utf8)) ?? ""
        let place = progress.isEmpty ? "before the first action" : "at action \(progress)"
        let how =
            switch end {
            case .exit(let code): "ended with exit code \(code) \(place)"
            case .signal(let number): "was ended by signal \(number) \(place)"
            case .late: "took longer than \(timeout), and was ended \(place)"
            case .cancelled: "was ended with the test, which is cancelled"
            }
        let output = (try? String(contentsOf: files.output(index), encoding: .utf8)) ?? ""
        let lines = output.split(separator: "\n")
        // A trap prints its reason, and then many lines about its place.
        let reasons = lines.filter {
            $0.contains("Fatal error") || $0.hasPrefix("the actions could not")
        }
        let last = (reasons.isEmpty ? lines.suffix(20) : reasons.prefix(3)[...])
        var parts = ["process \(index + 1) \(how). It said\(last.isEmpty ? " nothing." : ":")"]
        if !last.isEmpty { parts.append(last.map { "    \($0)" }.joined(separator: "\n")) }
        if case .exit = end, progress.isEmpty, reasons.isEmpty {
            parts.append(
                """
                It did not come to this check. Under `swift test` it would have run this test \
                alone: does the test reach this check in every process?
                """)
        }
        return parts.joined(separator: "\n\n")
    }
}
