/// What an entry concerns.
public enum Target: Hashable, Sendable, CustomStringConvertible {
    /// One store.
    case store(StoreName)
    /// Every store of a state.
    case state(Name)
    /// Every store, of whatever state, that handles the event.
    case event(Name)

    /// Parses what a person writes: `state/instance`, `state` for the state's shared store as ``StoreName`` has it,
    /// or `state/*` for every store of the state.
    ///
    /// - Returns: nil when a part is no name.
    public init?(_ text: String) {
        if text.hasSuffix(Self.everyStore) {
            guard let state = Name(String(text.dropLast(Self.everyStore.count))) else { return nil }
            self = .state(state)
        } else {
            guard let store = StoreName(text) else { return nil }
            self = .store(store)
        }
    }

    /// What stands behind a state's name where every store of it is meant.
    private static let everyStore = "/*"

    /// Whether an entry with this target is for a store; what is for an event goes by subscriptions.
    package func concerns(_ store: StoreName) -> Bool {
        switch self {
        case .store(let name): name == store
        case .state(let state): store.state == state
        case .event: false
        }
    }

    /// `state/instance` for a store, `state/*` for every store of a state, `event:name` for an event.
    public var description: String {
        switch self {
        case .store(let name): name.description
        case .state(let name): "\(name)\(Self.everyStore)"
        case .event(let name): "event:\(name)"
        }
    }
}
