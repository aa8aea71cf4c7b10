import ConfluxNode
import Foundation

/// A list of words. Each change also chooses a word: the same one everywhere, except in nodes whose names begin
/// with one of three words. Those make typical mistakes of programs.
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
        /// The order of a set, which is different in each process.
        case order
        /// The clock of this machine, instead of the entry's timestamp.
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
