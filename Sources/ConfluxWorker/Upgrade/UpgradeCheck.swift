import Conflux
import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxSystem
import ConfluxVocabulary
import Foundation

/// `upgrade --check`: migrates copies of the states of stores with this program, and tells what changes.
///
/// It asks the nodes that host a store for its state, as `conflux observe` does, or reads the store's newest snapshot in
/// the log if none does, and changes nothing anywhere. Each state is migrated in two processes of their own: a migration
/// that traps or never ends does not end the command, and one whose result differs from process to process is found.
package struct UpgradeCheck: Sendable {
    package static let check = Flag(
        "--check", summary: "Only migrate copies, and show what would change.")
    package static let store = Operand<StoreName?>(
        optional: "STORE", parse: .storeName,
        summary:
            "The store. If omitted, --check checks all stores of the states that this program knows."
    )
    package static let file = Option<String?>(
        "--file", valueName: "FILE", parse: .text,
        summary: """
            Check the state in this file, as JSON, instead of asking for it. Needs STORE and \
            --schema-version. A migration that traps ends the command.
            """)
    package static let schemaVersion = Option<UInt32?>(
        "--schema-version", valueName: "N", parse: .integer(in: 1...(.max)),
        summary: "The schema version of the state in the file.")

    package static let inForce = Option<StateVersion?>(
        "--in-force", parse: .stateVersion,
        summary: """
            With --file: the last entry in the state, and the schema version in force from there \
            on. If it rose from this state, its upgraded entry in conflux log --json has the base, \
            the schemaVersion and the digest. A store must be able to begin like this.
            """)

    /// Describes the command.
    ///
    /// - Parameters:
    ///   - states: The states that the program knows.
    ///   - program: The words before `upgrade`, for the examples.
    ///   - options: The options with which the command finds the sequencer.
    /// - Returns: The description.
    package static func command(
        knowing states: [HostedState], of program: String, options: [any ParameterKey]
    ) -> Command {
        Command(
            "upgrade", summary: "Check whether this program can take over stores.",
            discussion: """
                Asks the nodes that host a store for its state, or reads its newest snapshot in \
                the log if none does. Migrates a copy of it with this program, and shows what \
                changes, place by place. Nothing else changes, anywhere. Each state is migrated \
                twice, in processes of their own. A store fails the check if its state can't be \
                migrated, if the two results differ, or if this takes longer than --timeout. The \
                other stores are still checked. The exit code is 0 if none fails.

                States: \(states.map { "\($0.name) (version \($0.schemaVersion))" }.sorted()
                    .joined(separator: ", ")).
                """,
            parameters: parameters + options,
            examples: [
                .init("Check all stores", "\(program) upgrade --check"),
                .init(
                    "Check a state that you kept",
                    "\(program) upgrade --check counter --file old.json --schema-version 1"),
            ])
    }

    /// What the check takes, besides the options of a connection.
    package static let parameters: [any ParameterKey] = [
        store, check, file, schemaVersion, inForce,
    ]

    private let environment: CommandEnvironment
    private let states: [HostedState]
    private let timeout: Duration

    /// Checks the parameters before anything else is done.
    ///
    /// - Parameters:
    ///   - arguments: The command and its values.
    ///   - states: The states that the program knows.
    /// - Throws: A usage error if options don't fit, or a store's state is unknown.
    package static func validate(
        _ arguments: Invocation, knowing states: [HostedState]
    ) throws(UsageError) {
        guard arguments[check] else {
            throw arguments.usageError("say --check: this command only checks")
        }
        if let store = arguments[store] { try arguments.check(store, isOf: states) }
        let count = [arguments[file] == nil, arguments[schemaVersion] == nil].count { !$0 }
        guard count == 0 || count == 2 && arguments[store] != nil else {
            throw arguments.usageError("--file, --schema-version and STORE go together")
        }
        guard arguments[inForce] == nil || count == 2 else {
            throw arguments.usageError("--in-force needs --file")
        }
    }

    /// Runs the command.
    ///
    /// - Parameters:
    ///   - environment: The command's environment.
    ///   - states: The states that the program knows.
    /// - Returns: How the command ends.
    /// - Throws: Why nothing could be checked.
    package static func run(
        _ environment: CommandEnvironment, knowing states: [HostedState]
    ) async throws(CommandFailure) -> ExitCode {
        let timeout = environment.arguments[WorkerOptions.timeout]
        return try await UpgradeCheck(environment: environment, states: states, timeout: timeout)
            .run()
    }

    private static func state(of store: StoreName, in states: [HostedState]) -> HostedState? {
        states.first { $0.name == store.state.text }
    }

    private func run() async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        if let path = arguments[Self.file], let version = arguments[Self.schemaVersion],
            let store = arguments[Self.store], let state = Self.state(of: store, in: states)
        {
            let finding = try find(store, state, at: path, version: Int(version))
            add(finding)
            return finding.hasFailed ? .failed : .success
        }
        let findings = try await Connection.use(environment) {
            connection async throws(CommandFailure) in try await findAll(connection)
        }
        let failedCount = findings.count(where: \.hasFailed)
        environment.show(
            ["checked": findings.count, "failed": failedCount],
            "\(findings.count) checked, \(failedCount) failed")
        return failedCount == 0 ? .success : .failed
    }

    private func add(_ finding: UpgradeFinding) {
        if environment.isJSON {
            environment.output.print(finding.json)
        } else {
            environment.output.print(finding.text)
        }
    }

    /// Checks a state in a file, in this process.
    private func find(
        _ store: StoreName, _ state: HostedState, at path: String, version: Int
    ) throws(CommandFailure) -> UpgradeFinding {
        let bytes: [UInt8]
        do throws(SystemFailure) {
            bytes = try InputFile(path).readAll()
        } catch {
            throw CommandFailure(
                .noInput,
                "\(path) can't be read: \(error.reason(advice: "Name a file with a state in JSON."))"
            )
        }
        let inForce = environment.arguments[Self.inForce]
        let result = Result { () throws(StoreError) in
            try state.changesByMigration(bytes, version, inForce)
        }.mapError { CommandFailure(.failed, code: $0.code.rawValue, $0.message) }
        return UpgradeFinding(
            store: store, from: version, to: state.schemaVersion, result: result)
    }

    // MARK: Stores in use

    private func findAll(
        _ connection: Connection
    ) async throws(CommandFailure) -> [UpgradeFinding] {
        let status = try await connection.status()
        let wanted = environment.arguments[Self.store]
        let present = status.stores.filter { wanted == nil || $0.store == wanted }
        if let wanted, present.isEmpty {
            throw CommandFailure(
                .notFound, code: "notHosted",
                "There is no store \(wanted): it was never opened, or it was dropped. conflux status shows the stores."
            )
        }
        var findings: [UpgradeFinding] = []
        for store in present {
            guard let state = Self.state(of: store.store, in: states) else { continue }
            let finding = try await find(store, state, status, connection)
            findings.append(finding)
            add(finding)
        }
        return findings
    }

    private func find(
        _ store: StoreStatus, _ state: HostedState, _ status: SequencerStatus,
        _ connection: Connection
    ) async throws(CommandFailure) -> UpgradeFinding {
        var seen: SeenState?
        let result: UpgradeFinding.Result
        switch try await connection.state(of: store, status) {
        case .failure(let failure): result = .failure(failure)
        case .success(let found):
            seen = found
            result = try await UpgradeTrial(
                command: environment.arguments.path, store: store.store, state: found,
                timeout: timeout
            ).run()
        }
        return UpgradeFinding(
            store: store.store, from: Int(seen?.version ?? store.schemaVersion),
            to: state.schemaVersion, result: result, sequence: seen?.sequence)
    }
}
