import ConfluxNode
import ConfluxSystem
import ConfluxVocabulary
import Foundation

/// Migrates one state in two processes of this program.
struct UpgradeTrial {
    /// The words that call the command: the program's name, and `upgrade`.
    let command: [String]
    let store: StoreName
    let state: SeenState
    /// How long each process may take.
    let timeout: Duration

    func run() async throws(CommandFailure) -> UpgradeFinding.Result {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-upgrade-\(UUID().uuidString)")
        do throws(SystemFailure) {
            // The state may be confidential: only this user may use the folder.
            try Folder.makeOne(folder.path)
        } catch {
            throw unwritable(folder, error)
        }
        let result = await Result { () async throws(CommandFailure) in
            try write(to: folder)
            return try await compare(in: folder)
        }
        // The system clears its temporary folder, too.
        try? FileManager.default.removeItem(at: folder)
        return try result.get()
    }

    private func write(to folder: URL) throws(CommandFailure) {
        do throws(SystemFailure) {
            let file = try DraftFile(folder.appendingPathComponent("state.json").path)
            try file.write(state.bytes)
            try file.complete()
        } catch {
            throw unwritable(folder, error)
        }
    }

    private func unwritable(_ folder: URL, _ failure: SystemFailure) -> CommandFailure {
        let parent = Folder.parent(of: folder.path)
        let advice = "Make the folder \(parent), or set TMPDIR to another one."
        return CommandFailure(
            .cannotCreate,
            """
            The state of \(store) can't be written to the folder for temporary files, \(parent): \
            \(failure.reason(advice: advice))
            """)
    }

    private func compare(in folder: URL) async throws(CommandFailure) -> UpgradeFinding.Result {
        let first = try await migrate(in: folder)
        guard case .success(let changes) = first else { return first }
        let second = try await migrate(in: folder)
        guard case .success(let others) = second else { return second }
        guard changes != others else { return first }
        let place = zip(changes, others).first { $0 != $1 }?.0.path
        return .failure(
            CommandFailure(
                .failed, code: "migrationFailed",
                """
                Two processes of this program migrate the same state of \(store) differently\
                \(place.map { $0.tokens.isEmpty ? "" : " at \($0)" } ?? ""). Replicas would differ like \
                this: let migrate(_:from:) depend on nothing but its arguments.
                """))
    }

    private func migrate(in folder: URL) async throws(CommandFailure) -> UpgradeFinding.Result {
        let (output, errors) = (
            folder.appendingPathComponent("output"), folder.appendingPathComponent("errors")
        )
        let program = OwnProgram(
            arguments: Array(command.dropFirst()) + [
                "--check", store.description, "--file",
                folder.appendingPathComponent("state.json").path, "--schema-version",
                "\(state.version)", "--json",
                "--in-force", "\(state.inForce)",
            ], output: output,
            errors: errors)
        let end = try await program.run(within: timeout)
        if Task.isCancelled {
            throw CommandFailure(
                .interrupted, "Interrupted before all stores were checked. Run the command again.")
        }
        do {
            // Only a process that ended by itself has written a whole line.
            if case .exit = end, let line = try lines(of: output).first,
                let result = try UpgradeFinding.Result(line: JSONValue(json: line))
            {
                return result
            }
            return .failure(failure(of: end, try lines(of: errors)))
        } catch {
            throw CommandFailure(
                .failed, "The check of \(store) printed no result that can be read: \(error)")
        }
    }

    private func lines(of file: URL) throws -> [String] {
        try Data(contentsOf: file).split(separator: UInt8(ascii: "\n")).map { String(shown: $0) }
    }

    private func failure(
        of end: OwnProgram.End, _ errors: [String]
    ) -> CommandFailure {
        let said = errors.last { $0.contains("Fatal error") } ?? errors.last
        let last = said.map { ": \($0)" } ?? ""
        return switch end {
        case .late:
            CommandFailure(
                .timedOut,
                """
                The migration of \(store) did not end within \(timeout). Correct migrate(_:from:), or wait \
                longer (--timeout). A worker with this program would not end either.
                """)
        case .signal(let number):
            CommandFailure(
                .failed, code: "trapped",
                """
                The migration of \(store) ended its process by signal \(number)\(last). A worker with this \
                program would die of it: correct migrate(_:from:).
                """)
        case .exit(let status):
            CommandFailure(
                .failed, code: "trapped",
                "The process that migrated \(store) ended with \(status)\(last). Correct migrate(_:from:)."
            )
        }
    }
}
