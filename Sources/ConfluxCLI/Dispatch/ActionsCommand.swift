import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux actions`: lists the actions of a state, with an example of each.
enum ActionsCommand {
    private static let state = Operand(
        "STATE", parse: ValueParser.storeName.completing(.asked("states")),
        summary: "The state, or one of its stores.")

    static let description = Command(
        "actions", summary: "List the actions of a state, with an example of each.",
        discussion: """
            Shows the shape of each action, its fields and the kinds of their values, and an action with made-up \
            values. A field with a question mark may be missing. The tool knows the states counter and document. For \
            other states, it asks the sequencer, which knows the shapes from the nodes that host them, for each schema \
            version.
            """,
        parameters: [state] + Connection.parameters,
        examples: [
            .init("See what a counter can do", "conflux actions counter"),
            .init("See what a state of your own can do", "conflux actions stock"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let name = environment.arguments[state].state
        let versions = try await catalogs(of: name, environment)
        if environment.isJSON {
            for (version, catalog) in versions {
                let shapes = try failing { () throws(CodingFailure) in
                    try JSONValue(json: catalog.json)
                }
                environment.output.print(
                    JSONObject(["actions": shapes, "schemaVersion": version, "state": name]).json)
            }
            return .success
        }
        for (version, catalog) in versions {
            if versions.count > 1 { environment.output.add("schema version \(version):") }
            let rows = zip(catalog.lines, catalog.examples).map { shape, example in
                let action = example.contains("{") ? "'\(example)'" : example
                return TextTable.Row(cells: [shape], list: ["conflux dispatch \(name) \(action)"])
            }
            let table = TextTable(["ACTION", "EXAMPLE"], rows)
            for line in table.lines(columns: 80, environment.output.appearance).dropFirst() {
                environment.output.add(line)
            }
        }
        environment.output.flush()
        return .success
    }

    /// The shapes of a state's actions, by schema version: those that the tool knows, or else those that the sequencer
    /// knows.
    private static func catalogs(
        of name: Name, _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> [(version: UInt32, catalog: ActionCatalog)] {
        if let catalog = BuiltinStates.actions(of: name)?.catalog { return [(1, catalog)] }
        let status = try await Connection.use(environment) {
            connection async throws(CommandFailure) in try await connection.status(.shapes(name))
        }
        let told = status.shapes.compactMap { shapes in
            (try? ActionCatalog(json: shapes.json)).map { (shapes.schemaVersion, $0) }
        }
        guard told.isEmpty else { return told }
        let known = status.states
        guard known.contains(name.text) else {
            let meant = nearest(to: name.text, in: known).map { " Did you mean '\($0)'?" } ?? ""
            throw CommandFailure(
                .notFound, code: "\(RejectionCode.unknownTarget)",
                "There is no state \(name); there are: \(known.joined(separator: ", ")).\(meant)")
        }
        throw CommandFailure(
            .notFound, code: "notHosted",
            """
            No live node has told the sequencer the actions of \(name). Start a worker that hosts it, and run the \
            command again.
            """)
    }
}

extension SequencerStatus {
    /// The states of the sequencer's stores, and those that the tool knows.
    var states: [String] {
        Set(stores.map(\.store.state.text) + BuiltinStates.hosted.map(\.name)).sorted()
    }
}

extension CodingFailure: CommandError {
    package var failure: CommandFailure { CommandFailure(.failed, "\(self)") }
}
