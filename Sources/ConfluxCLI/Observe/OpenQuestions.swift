import ConfluxNode
import ConfluxWorker
import Synchronization

/// The questions of a command that follows stores, which wait for a change.
///
/// They end early when nobody will answer them, or when their numbers belong to a history that the log has lost. Then
/// the command asks anew.
final class OpenQuestions: Sendable {
    /// What the numbers of a question belong to.
    struct History: Hashable, Sendable {
        fileprivate var losses = 0
    }

    private struct Content {
        var history = History()
        var ends: [Int: @Sendable () -> Void] = [:]
        var next = 0
    }

    private let state = Mutex(Content())

    /// The present history.
    var history: History { state.withLock { $0.history } }

    /// Takes a question that was asked.
    ///
    /// - Parameters:
    ///   - history: The history that its numbers belong to; nil if it has none. If that was lost meanwhile, the question
    ///     ends at once.
    ///   - end: Ends the question.
    /// - Returns: Its number here.
    func begin(of history: History?, _ end: @escaping @Sendable () -> Void) -> Int {
        let (number, isLost) = state.withLock { state in
            state.next += 1
            state.ends[state.next] = end
            return (state.next, history.map { $0 != state.history } ?? false)
        }
        if isLost { end() }
        return number
    }

    /// The question has ended.
    func remove(_ number: Int) {
        state.withLock { $0.ends[number] = nil }
    }

    /// Ends all questions.
    ///
    /// - Parameter isHistoryLost: Whether the numbers that nodes reported before mean nothing any more.
    func endAll(isHistoryLost: Bool) {
        let ends = state.withLock { state in
            if isHistoryLost { state.history.losses += 1 }
            return Array(state.ends.values)
        }
        for end in ends { end() }
    }

    /// Ends the questions that an event of the node makes void.
    func note(_ event: NodeEvent, _ environment: CommandEnvironment) {
        switch event {
        // What the nodes show from then on may have lower numbers.
        case .historyLost(let from, let through):
            endAll(isHistoryLost: true)
            guard environment.lifetime == .following else { return }
            environment.tellHistoryLost(
                ["from": from, "through": through],
                "the log has lost the entries \(from) to \(through), as after a restore from a backup: "
                    + "the states that were shown may be void, and numbers begin again at \(from)"
            )
        // The sequencer that had the questions is gone, or the connection by which it would have answered.
        case .joined: endAll(isHistoryLost: true)
        case .reconnected: endAll(isHistoryLost: false)
        default: break
        }
    }
}
