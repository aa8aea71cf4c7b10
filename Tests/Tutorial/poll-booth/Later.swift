import Conflux
import ConfluxNode
import PollModel

extension Store where State == ModelState<Poll> {
    /// Offers an answer in thirty seconds, unless ``keep(_:)`` comes first.
    ///
    /// It is offered even if this process has ended by then.
    func offerLater(_ answer: String) async throws {
        try await dispatch(.offer(answer: answer), after: .seconds(30), key: answer).receipt()
    }

    /// Offers an answer now, if it was to be offered later.
    ///
    /// - Returns: Whether it was. If not, it is offered already, or nobody wanted that.
    func keep(_ answer: String) async throws -> Bool {
        guard try await cancelTimer(answer) else { return false }
        try await dispatch(.offer(answer: answer)).receipt()
        return true
    }
}
