import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// The names that a shell offers for a store, a node or a context: `conflux __complete stores`.
///
/// If it can't find them, it prints nothing: an error would only disturb a person who is typing a line.
enum CompletionNames {
    /// How long it waits for the sequencer's answer.
    private static let patience = "300ms"

    /// Prints the names of a kind, one a line.
    static func show(_ kind: String, _ variables: [String: String]) async -> ExitCode {
        let names = (try? await names(kind, variables)) ?? []
        return names.isEmpty ? .success : StandardOutput.show(names.joined(separator: "\n"))
    }

    private static func names(_ kind: String, _ variables: [String: String]) async throws
        -> [String]
    {
        let file = ContextFile(variables)
        if kind == "contexts" { return try file.read().names }
        let all = try file.adding(variables["CONFLUX_CONTEXT"], to: variables)
        guard
            case .run(let invocation) = try Tool.program.parse(
                ["status", "--timeout", patience], environment: all)
        else { return [] }
        let environment = CommandEnvironment(
            invocation, isJSON: false, lifetime: .limited, interruption: .watchSignals())
        let connection = try await Connection.open(environment, as: .observer)
        let status = try await connection.status()
        await connection.close()
        switch kind {
        case "stores": return status.stores.map(\.store.description)
        case "nodes": return status.sessions.filter(\.isLive).compactMap { $0.name?.text }
        default: return []
        }
    }
}
