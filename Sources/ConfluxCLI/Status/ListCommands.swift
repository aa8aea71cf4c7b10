import ConfluxArguments
import ConfluxNode
import ConfluxWorker

/// `conflux stores` and `conflux nodes`: parts of the status as lists.
enum ListCommands {
    static let stores = Command(
        "stores", summary: "List the stores.",
        discussion: """
            For each store: the entry that created it, how many live nodes host it, its schema version, its newest \
            snapshot, and its status: frozen, diverged or stopped, or ok. With --json there is a line for each store, \
            with the fields that conflux status prints.
            """,
        parameters: Connection.parameters,
        examples: [
            .init("List the stores", "conflux stores"),
            .init("Give their names to a script", "conflux stores --json | jq -r .store"),
        ])

    static let nodes = Command(
        "nodes", summary: "List the nodes.",
        discussion: """
            For each node: the number of its session (its incarnation), whether it is live, how many entries its \
            replicas lag behind, how many actions it has dispatched, and the stores that it hosts. The text leaves \
            out nodes without a name that have left. With --json there is a line for each node, with the fields that \
            conflux status prints.
            """,
        parameters: Connection.parameters,
        examples: [.init("See who is there", "conflux nodes")])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let status = try await Connection.use(environment) {
            connection async throws(CommandFailure) in try await connection.status()
        }
        let isStores = environment.arguments.command == stores.name
        if environment.isJSON {
            let values = isStores ? StatusFields.stores(status) : StatusFields.sessions(status)
            for value in values { environment.output.print(value.json) }
            return .success
        }
        let table = isStores ? StatusText.stores(status) : StatusText.nodes(status)
        let lines = table.lines(columns: StatusText.columns, environment.output.appearance)
        let none =
            isStores
            ? "no stores yet: a worker that hosts one creates it"
            : "no nodes: a worker, or a program of yours, is one as soon as it connects"
        for line in lines.isEmpty ? [none] : Array(lines.dropFirst()) {
            environment.output.add(line)
        }
        environment.output.flush()
        return .success
    }
}
