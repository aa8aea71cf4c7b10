/// What an entry concerns.
public enum Target: Hashable, Sendable, CustomStringConvertible {
    /// One store.
    case store(StoreName)
    /// Every store of a state.
    case state(Name)
    /// Every store, of whatever state, that handles the event.
    case event(Name)

    /// Parses what a person writes: `state`, or `state/instance`.
    ///
    /// - Returns: nil when a part is no name.
    public init?(_ text: String) {
        if text.contains("/") {
            guard let store = StoreName(text) else { return nil }
            self = .store(store)
        } else {
            guard let state = Name(text) else { return nil }
            self = .state(state)
        }
    }

    /// Whether an entry with this target is for a store; what is for an event goes by subscriptions.
    package func concerns(_ store: StoreName) -> Bool {
        switch self {
        case .store(let name): name == store
        case .state(let state): store.state == state
        case .event: false
        }
    }

    /// `state/instance` for a store, `state` for a state, `event:name` for an event.
    public var description: String {
        switch self {
        case .store(let name): name.description
        case .state(let name): name.description
        case .event(let name): "event:\(name)"
        }
    }
}
