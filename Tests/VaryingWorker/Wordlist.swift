import ConfluxNode
import Foundation

/// A list of words, of which each change also notes one. Which one is the same everywhere, but for nodes
/// whose names begin with one of three: they make the mistakes that programs make.
struct Wordlist: Model {
    static let name = "wordlist"
    var words: [String] = []
    var chosen: [String] = []

    enum Action: Codable, Sendable { case add(word: String, padding: String) }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        guard case .add(let word, _) = action else { return }
        words.append(word)
        chosen = [Mistake.present.choice(of: words, at: context)]
    }

    enum Mistake {
        case none
        /// The order of a set is another one in each process.
        case order
        /// The clock of this machine, and not that of the entry.
        case clock
        case dice

        static let present: Mistake =
            if begins("unordered") {
                .order
            } else if begins("late") {
                .clock
            } else if begins("lucky") {
                .dice
            } else {
                .none
            }

        private static func begins(_ prefix: String) -> Bool {
            CommandLine.arguments.contains { $0.hasPrefix(prefix) }
        }

        func choice(of words: [String], at context: ActionContext) -> String {
            switch self {
            case .none: words.first ?? ""
            case .order: Set(words).sorted { $0.hashValue < $1.hashValue }.description
            case .clock: Date().description
            case .dice: "\(Int.random(in: 1...1_000_000_000))"
            }
        }
    }
}
