import ConfluxVocabulary

/// Follows what a log gives to one store, in the store's lane.
///
/// It has functions for one type of state: to call a generic one of middleware for each action takes longer than to
/// commit a small action.
package struct RunFollower<S: State> {
    /// A run of ordered actions begins. Gets how many there are, at most, and the bytes of their payloads.
    package let willBeginRun: (_ count: Int, _ payloadBytes: Int) -> Void
    /// An action was committed; or refused, with the error that the state's check threw. Gets the state after it, which
    /// must not escape.
    package let didCommit: (S.Action, ActionContext, (any Error)?, S) -> Void
    /// The run has ended.
    package let didEndRun: () -> Void
    /// The store begins with a state: a snapshot was put in, or the follower begins to follow. Gets the state, which must
    /// not escape, and the number of the last entry that it contains.
    package let didBegin: (S, SequenceNumber) -> Void

    /// Makes a follower. All functions are called in the store's lane.
    package init(
        willBeginRun: @escaping (_ count: Int, _ payloadBytes: Int) -> Void,
        didCommit: @escaping (S.Action, ActionContext, (any Error)?, S) -> Void,
        didEndRun: @escaping () -> Void, didBegin: @escaping (S, SequenceNumber) -> Void
    ) {
        (self.willBeginRun, self.didCommit) = (willBeginRun, didCommit)
        (self.didEndRun, self.didBegin) = (didEndRun, didBegin)
    }
}

extension StoreCore {
    /// Lets a follower see the present state, and everything after it. The store has one follower, or none.
    package func follow(with follower: RunFollower<S>) {
        // Used by the thread that serves the lane alone, to which it is handed over here.
        nonisolated(unsafe) let follower = follower
        inspect { [self] state, position in
            guard let state else { return }
            self.follower = follower
            follower.didBegin(state, position)
        }
    }
}
