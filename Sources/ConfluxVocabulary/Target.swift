/// What an entry concerns.
public enum Target: Hashable, Sendable, CustomStringConvertible {
    /// One store.
    case store(StoreName)
    /// Every store of a state.
    case state(Name)
    /// Every store, of whatever state, that handles the event. The sequencer adds the states that do; none if they are
    /// not known yet, or if it is an event of the log itself.
    case event(Name, of: [Name] = [])

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

    /// Reads what a target's ``description`` says, if it is of an entry that stores take.
    package init?(described text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "event" else {
            self.init(text)
            return
        }
        guard let event = Name(String(parts[1])) else { return nil }
        self = .event(event, of: parts[2].split(separator: ",").compactMap { Name(String($0)) })
    }

    /// Follows a state's name in a text for every store of the state.
    private static let everyStore = "/*"

    /// Whether an entry with this target is for a store.
    package func concerns(_ store: StoreName) -> Bool {
        switch self {
        case .store(let name): name == store
        case .state(let state): store.state == state
        case .event(_, let states): states.contains(store.state)
        }
    }

    /// The states of which it concerns every store, or the state of the store.
    package var states: [Name] {
        switch self {
        case .store(let name): [name.state]
        case .state(let state): [state]
        case .event(_, let states): states
        }
    }

    /// `state/instance` for a store, `state/*` for every store of a state, `event:name` for an event, and
    /// `event:name:one,another` with the states that handle it.
    public var description: String {
        switch self {
        case .store(let name): name.description
        case .state(let name): "\(name)\(Self.everyStore)"
        case .event(let name, []): "event:\(name)"
        case .event(let name, let states):
            "event:\(name):\(states.map(\.text).joined(separator: ","))"
        }
    }
}
