import Conflux
import Foundation

/// A state's history over several actions: which of them were refused, and what the state was.
///
/// A look records the state: before the first action, after the last, and in between as often as this costs at most
/// ``bytesPerAction`` of JSON for each action. So a small state is recorded after each action, a large one only after
/// every few. When a look is due depends on the state's size alone, so equal states are recorded at the same actions.
struct StateHistory: Codable {
    static let bytesPerAction = 1_024

    /// A recorded state.
    private struct Look: Codable {
        /// Which of the actions since the last look were refused.
        var refusals: [Bool] = []
        /// The state's canonical JSON; empty if it is the same as at the last look.
        var json = Data()
    }

    private enum CodingKeys: CodingKey { case looks }

    private var looks: [Look] = []
    private var pending = Look()
    /// The state at the last look.
    private(set) var last: [UInt8] = []

    init(_ json: [UInt8]) {
        note(json)
    }

    mutating func note(isRefused: Bool) {
        pending.refusals.append(isRefused)
    }

    mutating func note(_ json: [UInt8]) {
        pending.json = json == last ? Data() : Data(json)
        last = json
        looks.append(pending)
        pending = Look()
    }

    /// Whether there were actions since the last look.
    var isPending: Bool { !pending.refusals.isEmpty }
    /// Whether a look is due.
    var isDue: Bool { pending.refusals.count * Self.bytesPerAction >= last.count }
    /// Whether any action was committed.
    var hasCommits: Bool { looks.contains { $0.refusals.contains(false) } }

    // MARK: Comparing

    /// Where two histories of the same actions begin to differ; nil if they are the same.
    func firstDifference(from other: StateHistory) -> HistoryDifference? {
        var (mine, its) = (Data(), Data())
        var step = 0
        for (left, right) in zip(looks, other.looks) {
            for (index, pair) in zip(left.refusals, right.refusals).enumerated()
            where pair.0 != pair.1 {
                return HistoryDifference(
                    steps: step + index + 1...step + index + 1, pointer: nil,
                    first: Self.word(pair.0), other: Self.word(pair.1))
            }
            if !left.json.isEmpty { mine = left.json }
            if !right.json.isEmpty { its = right.json }
            let end = step + left.refusals.count
            if mine != its {
                return HistoryDifference(steps: min(step + 1, end)...end, mine, its)
            }
            step = end
        }
        return nil
    }

    private static func word(_ isRefused: Bool) -> String {
        isRefused ? "refused" : "committed"
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

    fileprivate init(steps: ClosedRange<Int>, _ first: Data, _ other: Data) {
        let change = JSONChange.first(from: Array(first), to: Array(other))
        self.init(
            steps: steps, pointer: change?.path,
            first: change.map { Self.text($0.old) } ?? "unreadable",
            other: change.map { Self.text($0.new) } ?? "unreadable")
    }

    private static func text(_ value: JSONValue?) -> String {
        guard let text = value?.description else { return "nothing" }
        return text.count <= charactersMax ? text : "\(text.prefix(charactersMax))…"
    }

    /// The place in words, after a space; empty if there is none.
    var inPlace: String {
        guard let pointer else { return "" }
        return pointer.tokens.isEmpty ? " as a whole" : " at \(pointer)"
    }
}
