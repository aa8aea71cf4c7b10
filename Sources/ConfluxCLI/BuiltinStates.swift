import ConfluxBuiltins
import ConfluxNode
import ConfluxVocabulary
import ConfluxWorker

/// The states that the tool itself knows.
enum BuiltinStates {
    /// The states for a worker that hosts them.
    static let hosted = [HostedState(CounterState.self), HostedState(Document.self)]

    /// Their names, for a sentence.
    static let names = hosted.map(\.name).joined(separator: " and ")

    /// A state, to make the past of its stores; nil if the tool does not know it.
    static func replayed(_ state: Name) -> ReplayedState? {
        hosted.first { $0.name == state.text }?.replayed
    }

    /// Reads and writes the actions of one of them.
    struct Codec: Sendable {
        /// Checks a typed action, and encodes it.
        let payload: @Sendable (String) throws(CodingFailure) -> [UInt8]
        /// Converts a payload of any coding to JSON.
        let json: @Sendable (Bytes, PayloadCoding) throws(CodingFailure) -> [UInt8]
        /// The shapes of the actions.
        let catalog: ActionCatalog?

        init<Action: Codable & Sendable>(_ action: Action.Type, sizeBytesMax: Int) {
            let coder = ActionCoder<Action>(sizeBytesMax: sizeBytesMax)
            catalog = ActionCatalog.derived(of: action, bytesMax: 64 << 10)
            payload = { text throws(CodingFailure) in
                try coder.encode(try coder.decode(commandLine: text), as: .json)
            }
            json = { (bytes, coding) throws(CodingFailure) in
                try coder.encode(try coder.decode(bytes, as: coding), as: .json)
            }
        }
    }

    /// Reads and writes the actions of a state; nil if the tool does not know it.
    static func actions(of state: Name, sizeBytesMax: Int = 32 << 20) -> Codec? {
        switch state.text {
        case CounterState.name: Codec(CounterAction.self, sizeBytesMax: sizeBytesMax)
        case Document.name: Codec(Document.Action.self, sizeBytesMax: sizeBytesMax)
        default: nil
        }
    }
}

extension Target {
    /// The state that the target concerns; nil for an event.
    var state: Name? {
        switch self {
        case .store(let store): store.state
        case .state(let state): state
        case .event: nil
        }
    }
}
