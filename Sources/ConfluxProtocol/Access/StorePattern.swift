import ConfluxVocabulary

/// The stores that a right covers, as text: `STATE/INSTANCE`. A `*` stands for any characters
/// within its part. `STATE` alone means `STATE/shared`, as everywhere.
public struct StorePattern: Sendable, Hashable, CustomStringConvertible {
    /// Every store.
    public static let all = StorePattern("*/*")!

    private let state: [UInt8]
    private let instance: [UInt8]

    /// Makes a pattern.
    ///
    /// - Parameter text: One or two parts, separated by a slash, each of 1 to 64 of the characters
    ///   `a-z 0-9 . _ - *`. For any other text, nil is returned.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            .map { Array($0.utf8) }
        guard (1...2).contains(parts.count), parts.allSatisfy(Self.isPart) else { return nil }
        state = parts[0]
        instance = parts.count == 2 ? parts[1] : Array(Name.shared.text.utf8)
    }

    /// The text of the pattern, with both parts.
    public var description: String {
        String(checkedUTF8: state + [UInt8(ascii: "/")] + instance)
    }

    /// Whether the pattern covers a store.
    public func covers(_ store: StoreName) -> Bool {
        Self.matches(store.state, state) && Self.matches(store.instance, instance)
    }

    /// Whether the pattern covers every store of a state.
    public func covers(state name: Name) -> Bool {
        Self.matches(name, state) && Self.isAny(instance)
    }

    /// Whether the pattern covers every store.
    public var coversAll: Bool { Self.isAny(state) && Self.isAny(instance) }

    /// Whether the pattern covers everything that a target concerns.
    public func covers(_ target: Target) -> Bool {
        guard !coversAll else { return true }
        return switch target {
        case .store(let store): covers(store)
        case .state(let name): covers(state: name)
        // A right may have several patterns: see `Rights.allow`.
        case .event: false
        }
    }

    /// Whether the pattern covers some of what a target concerns.
    func touches(_ target: Target) -> Bool {
        switch target {
        case .store(let store): covers(store)
        case .state(let name): Self.matches(name, state)
        case .event(_, let states): states.contains { Self.matches($0, state) }
        }
    }

    private static let star = UInt8(ascii: "*")

    private static func isAny(_ part: [UInt8]) -> Bool { part.allSatisfy { $0 == star } }

    private static func isPart(_ part: [UInt8]) -> Bool {
        // A star may stand wherever a character of a name may.
        Name(utf8: part.map { $0 == star ? UInt8(ascii: "x") : $0 }[...]) != nil
    }

    /// Matches a name with one part of a pattern. Where a character does not fit, it goes back to the last star only:
    /// what an earlier star stands for is settled by then. Nothing is allocated, since this runs for each target of
    /// each batch.
    private static func matches(_ name: Name, _ pattern: [UInt8]) -> Bool {
        let text = name.text.utf8
        var (at, place) = (text.startIndex, 0)
        var retry: (at: String.Index, place: Int)?
        while at < text.endIndex {
            if place < pattern.count, pattern[place] == star {
                retry = (at, place)
                place += 1
            } else if place < pattern.count, pattern[place] == text[at] {
                text.formIndex(after: &at)
                place += 1
            } else if let last = retry {
                let next = text.index(after: last.at)
                retry = (next, last.place)
                (at, place) = (next, last.place + 1)
            } else {
                return false
            }
        }
        return pattern[place...].allSatisfy { $0 == star }
    }
}
