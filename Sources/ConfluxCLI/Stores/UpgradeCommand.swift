import ConfluxArguments
import ConfluxNode
import ConfluxWorker

/// `conflux upgrade`: raises a store's schema version, or only checks what that would change.
enum UpgradeCommand {
    private static let version = Option<UInt32?>(
        "--to", valueName: "VERSION", parse: .integer(in: 1...UInt32.max),
        summary: "The schema version; the newest that every host understands unless given.")
    private static let replay = Flag(
        "--replay",
        summary: """
            If no program of the store's version is left, let the newer program judge the entries since the last \
            snapshot again. Their outcomes may change.
            """)

    static let description = Command(
        "upgrade", summary: "Raise the schema version of a store, or check what that would change.",
        discussion: """
            Usually a version rises by itself, as soon as every program that hosts the store understands the \
            newer one. This command is for stores whose programs wait to be told (--upgrades told, or \
            NodeSettings.upgrades). Every host first migrates a snapshot. If that fails anywhere, nothing changes, and you learn why. If nobody \
            hosts the store, the command waits for a program that opens it.

            With --check, it asks the nodes that host a store for its state, migrates a copy of it with this \
            program, and shows what changes, place by place. Nothing else changes, anywhere. A store fails the \
            check if its state can't be migrated, if two migrations differ, or if this takes longer than \
            --timeout. The exit code is 0 if none fails.
            """,
        parameters: UpgradeCheck.parameters + [version, replay] + Connection.parameters,
        examples: [
            .init("Raise the version of a store", "conflux upgrade stock/shared"),
            .init(
                "Begin with the newer rules at the last snapshot, although the former program is gone",
                "conflux upgrade stock/shared --replay --timeout 60s"),
            .init("Check all stores", "conflux upgrade --check"),
        ])

    /// Checks the parameters before anything else is done.
    static func validate(_ arguments: Invocation) throws(UsageError) {
        if arguments[UpgradeCheck.check] {
            guard arguments[version] == nil, !arguments[replay] else {
                throw arguments.usageError("--check takes neither --to nor --replay")
            }
            return try UpgradeCheck.validate(arguments, knowing: BuiltinStates.hosted)
        }
        guard arguments[UpgradeCheck.store] != nil else {
            throw arguments.usageError("name the STORE, or say --check")
        }
        guard arguments[UpgradeCheck.file] == nil, arguments[UpgradeCheck.schemaVersion] == nil,
            arguments[UpgradeCheck.inForce] == nil
        else {
            throw arguments.usageError("--file, --schema-version and --in-force need --check")
        }
    }

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        guard let name = arguments[UpgradeCheck.store], !arguments[UpgradeCheck.check] else {
            return try await UpgradeCheck.run(environment, knowing: BuiltinStates.hosted)
        }
        let (version, mayReplay) = (arguments[version] ?? 0, arguments[replay])
        return try await StoreDecision.make(
            about: name, environment,
            for: { .upgraded(name, life: $0, version: version, mayReplay: mayReplay) },
            { _ in "upgraded: \(name)" })
    }
}
