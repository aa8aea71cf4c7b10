import ConfluxNode
import ConfluxWorker

/// Tells people why a command that follows something shows nothing: the sequencer, or its feed, is away.
struct OutageNotes {
    private let diagnostics: Diagnostics
    private let address: String
    private var isAway = false

    init(_ environment: CommandEnvironment, _ connection: Connection) {
        diagnostics = environment.diagnostics
        address = connection.core.address
    }

    mutating func tell(_ event: NodeEvent) {
        switch event {
        case .disconnected:
            isAway = true
            diagnostics.note(
                "the sequencer at \(address) does not answer; trying to reach it again")
        case .unreachable(let message): diagnostics.note(message)
        case .reconnected(let epoch) where isAway:
            isAway = false
            diagnostics.note("reconnected in epoch \(epoch)")
        default: break
        }
    }
}
