import ConfluxVocabulary

/// What a replay found.
public struct ReplayReport: Sendable, CustomStringConvertible {
    /// How many actions were applied or refused. An action for several stores counts once.
    public internal(set) var actions: UInt64 = 0
    /// How many times an action had no effect on a store.
    public internal(set) var refusals: UInt64 = 0
    /// How many times a store's state was compared; for a recording, how many states were compared or noted.
    public internal(set) var states: UInt64 = 0
    /// The number of the last entry.
    public internal(set) var last = SequenceNumber.zero
    /// The states of which recorded digests were not compared, since this program no longer understands a version that
    /// was in force (`oldestSchemaVersion`). Outcomes and snapshots are compared all the same.
    public var uncompared: [String] { uncomparedStates.map(\.text).sorted() }
    /// The first difference; nil if there is none.
    public internal(set) var difference: ReplayDifference?

    var uncomparedStates: Set<Name> = []

    /// A line with the figures, and the difference if there is one.
    public var description: String {
        let rest =
            uncompared.isEmpty
            ? "" : "\nno digests were compared of: \(uncompared.joined(separator: ", "))"
        let figures =
            "\(actions) actions up to entry \(last), \(refusals) without effect, \(states) states"
        return difference.map { "\($0)\n\n(\(figures))\(rest)" }
            ?? "no difference: \(figures)\(rest)"
    }
}

/// Where a replay differs first from what is expected.
public struct ReplayDifference: Sendable, CustomStringConvertible {
    /// The store, as in `stock/north`.
    public let store: String
    /// The entries, one of which made the difference: a single one, unless the states in between are not known.
    public let entries: ClosedRange<SequenceNumber>
    /// How many entries in this range concerned the store.
    public let count: Int
    /// The action of the last of them; nil if it is not known.
    public let action: String?
    /// The place in the state, as a JSON pointer, if whole states were compared.
    public let path: String?
    /// What was expected: an outcome, a digest, or a value.
    public let expected: String
    /// What the code at hand made of it.
    public let found: String

    /// Several lines: the place, the action, and both values.
    public var description: String {
        var lines: [String]
        if count == 1 {
            lines = ["\(store) differs at entry \(entries.upperBound):", ""]
        } else {
            lines = [
                """
                \(store) differs after one of its \(count) entries from \(entries.lowerBound) to \
                \(entries.upperBound):
                """, "",
            ]
        }
        if let action { lines.append("    action: \(action)") }
        if let path { lines.append("    place: \(path.isEmpty ? "the whole state" : path)") }
        lines.append("    expected: \(expected)")
        lines.append("    found: \(found)")
        return lines.joined(separator: "\n")
    }
}
