import Conflux

/// The booth, for one voter at a time.
public struct Booth: ScheduledModel, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "booth"
    /// What Conflux dispatches when it is time for something.
    public static let timePassed = Action.timePassed

    /// What can happen to a booth.
    public enum Action: Codable, Sendable, Equatable {
        /// Lets a voter in, for thirty seconds.
        case enter(voter: String)
        /// Ends a voter's time.
        case leave(voter: String)
        /// Means nothing else.
        case timePassed
    }

    /// Who is in it.
    public var voter: String?
    /// What happens later. It is the same in every process, too.
    public var schedule = Schedule<Action>()

    /// An empty booth.
    public init() {}

    /// Refuses to let in a second voter.
    public func check(_ action: Action, _ context: ActionContext) throws {
        if case .enter = action, let voter { throw Occupied(voter: voter) }
    }

    /// Changes the booth. Conflux calls this only after the check has passed.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .enter(let name):
            voter = name
            schedule.set(.leave(voter: name), after: .seconds(30), key: "end", in: context)
        case .leave(let name) where name == voter:
            voter = nil
            schedule.cancel("end")
        case .leave, .timePassed: break
        }
    }
}

/// Why a voter has to wait.
public struct Occupied: Error, CustomStringConvertible {
    let voter: String

    /// The reason, for people.
    public var description: String { "\(voter) is in the booth" }
}
