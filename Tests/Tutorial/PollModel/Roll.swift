import Conflux

/// Who has voted. It does not say for what.
public struct Roll: Model, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "roll"

    /// What can happen to a roll.
    public enum Action: Codable, Sendable, Equatable {
        /// Notes that somebody votes.
        case sign(voter: String)
    }

    /// Everybody who has voted, in this order.
    public var voters: [String] = []

    /// A roll without voters.
    public init() {}

    /// Refuses to sign twice.
    public func check(_ action: Action, _ context: ActionContext) throws {
        if case .sign(let voter) = action, voters.contains(voter) { throw HasVoted(voter: voter) }
    }

    /// Changes the roll. Conflux calls this only after the check has passed.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        if case .sign(let voter) = action { voters.append(voter) }
    }
}

/// Why somebody can't vote.
public struct HasVoted: Error, CustomStringConvertible {
    let voter: String

    /// The reason, for people.
    public var description: String { "\(voter) has voted already" }
}
