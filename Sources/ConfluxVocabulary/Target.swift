/// What an entry concerns.
public enum Target: Hashable, Sendable, CustomStringConvertible {
    /// One store.
    case store(StoreName)
    /// Every store of a state.
    case state(Name)
    /// Every store, of whatever state, that handles the event.
    case event(Name)

    /// Parses a text that a person writes: `state/instance`, `state` for the state's shared store,
    /// like ``StoreName``, or `state/*` for every store of the state.
    ///
    /// - Returns: nil if a part is not a name.
    public init?(_ text: String) {
        if text.hasSuffix(Self.everyStore) {
            guard let state = Name(String(text.dropLast(Self.everyStore.count))) else { return nil }
            self = .state(state)
        } else {
            guard let store = StoreName(text) else { return nil }
            self = .store(store)
        }
    }

    /// Follows a state's name in a text for every store of the state.
    private static let everyStore = "/*"

    /// Whether an entry with this target is for a store. Always false for an event, which goes by
    /// subscriptions.
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
