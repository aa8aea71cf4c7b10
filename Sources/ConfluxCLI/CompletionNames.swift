import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// The names that a shell offers for a store, a state, a lease, a node or a context, and the actions of a state.
///
/// If they can't be found, there are none: an error would only disturb a person who is typing a line.
enum CompletionNames {
    /// How long it waits for the sequencer's answer.
    private static let patience = "300ms"

    /// The names of a kind; none if it is no kind of names.
    static func names(_ offer: Completions, _ variables: [String: String]) async -> [String] {
        guard let kind = offer.asked else { return [] }
        return (try? await find(kind, offer.operands, variables)) ?? []
    }

    // The operands are those before the word.
    private static func find(
        _ kind: String, _ operands: [String], _ variables: [String: String]
    ) async throws -> [String] {
        let file = ContextFile(variables)
        if kind == "contexts" { return try file.read().names }
        let state = operands.first.flatMap { Target($0) }?.state
        if kind == "actions", let state, let known = BuiltinStates.actions(of: state)?.catalog {
            return known.examples
        }
        let all = try file.adding(variables["CONFLUX_CONTEXT"], to: variables)
        guard
            case .run(let invocation) = try Tool.program.parse(
                ["status", "--timeout", patience], environment: all)
        else { return [] }
        let environment = CommandEnvironment(
            invocation, isJSON: false, lifetime: .limited, interruption: .watchSignals())
        if kind == "leases" {
            let claims = try await Connection.use(environment) {
                connection async throws(CommandFailure) in try await connection.leases()
            }
            return claims.filter(\.isHeld).map(\.name.description)
        }
        let status = try await Connection.use(environment) {
            connection async throws(CommandFailure) in
            try await connection.status(state.map { .shapes($0) } ?? .status)
        }
        switch kind {
        case "actions":
            let newest = status.shapes.max { $0.schemaVersion < $1.schemaVersion }
            return try newest.map { try ActionCatalog(json: $0.json).examples } ?? []
        case "states": return status.states
        case "stores": return status.stores.map(\.store.description)
        case "nodes": return status.sessions.filter(\.isLive).compactMap { $0.name?.text }
        default: return []
        }
    }
}
