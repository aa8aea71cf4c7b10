import Conflux

/// A question's answers, each with its votes.
public struct Poll: Model, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "poll"

    /// What can happen to a poll.
    public enum Action: Codable, Sendable, Equatable {
        /// Offers one more answer.
        case offer(answer: String)
        /// Counts a vote for an answer.
        case vote(answer: String)
    }

    /// The number of votes for each answer.
    public var votes: [String: Int] = [:]

    /// A poll without answers.
    public init() {}

    /// Refuses a vote for an answer that the poll does not offer.
    public func check(_ action: Action, _ context: ActionContext) throws {
        if case .vote(let answer) = action, votes[answer] == nil {
            throw UnknownAnswer(answer: answer)
        }
    }

    /// Changes the poll. Conflux calls this only after the check has passed.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .offer(let answer): votes[answer] = votes[answer] ?? 0
        case .vote(let answer): votes[answer, default: 0] += 1
        }
    }

    /// All answers with their votes, on one line.
    public var summary: String {
        votes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    }
}

/// Why a vote does not count.
public struct UnknownAnswer: Error, CustomStringConvertible {
    let answer: String

    /// The reason, for people.
    public var description: String { "the poll does not offer \(answer)" }
}
