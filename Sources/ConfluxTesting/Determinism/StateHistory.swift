import Conflux

/// What a state was before the first and after each of several actions.
struct StateHistory {
    /// A state, as its canonical JSON; empty where it is the one before.
    private(set) var lines: [(isRefused: Bool, json: [UInt8])] = []
    /// The last state.
    private(set) var last: [UInt8] = []

    mutating func append(_ json: [UInt8], isRefused: Bool) {
        lines.append((isRefused, json == last ? [] : json))
        last = json
    }

    // MARK: As a file

    private static let committed = UInt8(ascii: "."), refused = UInt8(ascii: "!")
    private static let newline = UInt8(ascii: "\n")

    /// A line each. JSON in its canonical form has no line breaks.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for line in lines {
            bytes.append(line.isRefused ? Self.refused : Self.committed)
            bytes += line.json
            bytes.append(Self.newline)
        }
        return bytes
    }

    init() {}

    /// Reads what ``bytes`` has written.
    init(bytes: [UInt8]) {
        for line in bytes.split(separator: Self.newline) {
            let json = Array(line.dropFirst())
            lines.append((line.first == Self.refused, json))
            if !json.isEmpty { last = json }
        }
    }

    // MARK: Comparing

    /// The first step at which two histories of the same actions differ; nil if they are the same.
    func firstDifference(from other: StateHistory) -> HistoryDifference? {
        var (mine, its): ([UInt8], [UInt8]) = ([], [])
        for (step, pair) in zip(lines, other.lines).enumerated() {
            if !pair.0.json.isEmpty { mine = pair.0.json }
            if !pair.1.json.isEmpty { its = pair.1.json }
            if mine != its { return HistoryDifference(step: step, mine, its) }
            if pair.0.isRefused != pair.1.isRefused {
                return HistoryDifference(
                    step: step, pointer: nil, here: Self.word(pair.0.isRefused),
                    there: Self.word(pair.1.isRefused))
            }
        }
        return nil
    }

    private static func word(_ isRefused: Bool) -> String { isRefused ? "refused" : "committed" }
}

/// Where two histories begin to differ, and how.
struct HistoryDifference {
    /// 0 for before the first action, else its place from 1 on.
    let step: Int
    /// The first place at which the states differ; nil where what became of the action does.
    let pointer: JSONPointer?
    let here: String
    let there: String
}

extension HistoryDifference {
    private static let charactersMax = 300

    fileprivate init(step: Int, _ mine: [UInt8], _ its: [UInt8]) {
        let mine = try? JSONValue(json: mine)
        let its = try? JSONValue(json: its)
        let pointer = mine.flatMap { mine in its.flatMap { mine.firstDifference(from: $0) } }
        self.init(
            step: step, pointer: pointer, here: Self.text(mine, pointer),
            there: Self.text(its, pointer)
        )
    }

    private static func text(_ value: JSONValue?, _ pointer: JSONPointer?) -> String {
        guard let value, let pointer else { return "unreadable" }
        guard let part = value[pointer] else { return "nothing" }
        let text = part.description
        return text.count <= charactersMax ? text : "\(text.prefix(charactersMax))…"
    }

    /// The place in words, with a space before; nothing where there is none.
    var inPlace: String {
        guard let pointer else { return "" }
        return pointer.tokens.isEmpty ? " as a whole" : " at \(pointer)"
    }
}
