import Conflux

/// A state's history over several actions: which of them were refused, and what the state was.
///
/// A look records the state: before the first action, after the last, and in between as often as this costs at most
/// ``bytesPerAction`` of JSON for each action. So a small state is recorded after each action, a large one only after
/// every few. When a look is due depends on the state's size alone, so equal states are recorded at the same actions.
struct StateHistory {
    static let bytesPerAction = 1_024

    /// A recorded state.
    private struct Look {
        /// The outcome of each action since the last look.
        var outcomes: [UInt8] = []
        /// The state's canonical JSON; empty if it is the same as at the last look.
        var json: [UInt8] = []
    }

    private static let committed = UInt8(ascii: "."), refused = UInt8(ascii: "!")
    private static let separator = UInt8(ascii: " "), newline = UInt8(ascii: "\n")

    private var looks: [Look] = []
    private var pending = Look()
    /// The state at the last look.
    private(set) var last: [UInt8] = []

    init(_ json: [UInt8]) {
        note(json)
    }

    mutating func note(isRefused: Bool) {
        pending.outcomes.append(isRefused ? Self.refused : Self.committed)
    }

    mutating func note(_ json: [UInt8]) {
        pending.json = json == last ? [] : json
        last = json
        looks.append(pending)
        pending = Look()
    }

    /// Whether there were actions since the last look.
    var isPending: Bool { !pending.outcomes.isEmpty }
    /// Whether a look is due.
    var isDue: Bool { pending.outcomes.count * Self.bytesPerAction >= last.count }
    /// Whether any action was committed.
    var hasCommits: Bool { looks.contains { $0.outcomes.contains(Self.committed) } }

    // MARK: As a file

    /// A line for each look. JSON in its canonical form has no line breaks.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for look in looks {
            bytes += look.outcomes
            bytes.append(Self.separator)
            bytes += look.json
            bytes.append(Self.newline)
        }
        return bytes
    }

    /// Reads what ``bytes`` returned.
    init(bytes: [UInt8]) {
        for line in bytes.split(separator: Self.newline) {
            let end = line.firstIndex(of: Self.separator) ?? line.endIndex
            let look = Look(outcomes: Array(line[..<end]), json: Array(line[end...].dropFirst()))
            looks.append(look)
            if !look.json.isEmpty { last = look.json }
        }
    }

    // MARK: Comparing

    /// Where two histories of the same actions begin to differ; nil if they are the same.
    func firstDifference(from other: StateHistory) -> HistoryDifference? {
        var (mine, its): ([UInt8], [UInt8]) = ([], [])
        var step = 0
        for (left, right) in zip(looks, other.looks) {
            for (index, pair) in zip(left.outcomes, right.outcomes).enumerated()
            where pair.0 != pair.1 {
                return HistoryDifference(
                    steps: step + index + 1...step + index + 1, pointer: nil,
                    first: Self.word(pair.0), other: Self.word(pair.1))
            }
            if !left.json.isEmpty { mine = left.json }
            if !right.json.isEmpty { its = right.json }
            let end = step + left.outcomes.count
            if mine != its {
                return HistoryDifference(steps: min(step + 1, end)...end, mine, its)
            }
            step = end
        }
        return nil
    }

    private static func word(_ outcome: UInt8) -> String {
        outcome == refused ? "refused" : "committed"
    }
}

/// Where two histories begin to differ, and how.
struct HistoryDifference {
    /// After which of the actions, from 1 on; 0 for before the first.
    let steps: ClosedRange<Int>
    /// The first place at which the states differ; nil if the action's outcome differs.
    let pointer: JSONPointer?
    let first: String
    let other: String
}

extension HistoryDifference {
    private static let charactersMax = 300

    fileprivate init(steps: ClosedRange<Int>, _ first: [UInt8], _ other: [UInt8]) {
        let first = try? JSONValue(json: first)
        let other = try? JSONValue(json: other)
        let pointer = first.flatMap { first in other.flatMap { first.firstDifference(from: $0) } }
        self.init(
            steps: steps, pointer: pointer, first: Self.text(first, pointer),
            other: Self.text(other, pointer))
    }

    private static func text(_ value: JSONValue?, _ pointer: JSONPointer?) -> String {
        guard let value, let pointer else { return "unreadable" }
        guard let part = value[pointer] else { return "nothing" }
        let text = part.description
        return text.count <= charactersMax ? text : "\(text.prefix(charactersMax))…"
    }

    /// The place in words, after a space; empty if there is none.
    var inPlace: String {
        guard let pointer else { return "" }
        return pointer.tokens.isEmpty ? " as a whole" : " at \(pointer)"
    }
}
