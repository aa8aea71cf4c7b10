import Conflux
import ConfluxProtocol

/// Why the sequencer did not take an action.
public struct RejectionReason: Error, Sendable, Hashable {
    /// The reason, for a program.
    public let code: RejectionCode
    /// The reason, for a person.
    public let message: String
}

extension DispatchError {
    static let outcomeUnknown = DispatchError(
        code: .outcomeUnknown,
        message: """
            The session ended before the outcome of the action was known: it may be in the log or \
            not. Look at the state before you dispatch it again.
            """)
}

extension HostingSubject {
    /// The name of the store or the state.
    var text: String {
        switch self {
        case .store(let store): store.description
        case .state(let state): state.description
        }
    }
}
