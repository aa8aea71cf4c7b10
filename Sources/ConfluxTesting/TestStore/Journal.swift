import Conflux
import ConfluxVocabulary
import Synchronization

/// A commit that a store under test made.
// Sendable: that actions may be committed on another thread is the contract of `State.Action`; all else
// is immutable.
struct JournalCommit<State: Conflux.State, Value: Sendable>: @unchecked Sendable {
    let action: State.Action
    /// What the dispatcher called it, or the action as it describes itself.
    let name: String
    let sequence: SequenceNumber
    /// The value that it left.
    let value: Value
    /// Why it was refused; nil if it was not.
    let refusal: (any Error)?
}

/// What a store under test did and the test has not said yet.
///
/// Commits and activities are kept apart: how the two follow each other depends on where observers run.
final class Journal<State: Conflux.State, Value: Sendable>: Sendable {
    typealias Commit = JournalCommit<State, Value>

    struct Content: Sendable {
        var commits: [Commit] = []
        var activities: [any Sendable] = []
        /// Those who wait for more.
        fileprivate var waiting: [Int: AsyncStream<Void>.Continuation] = [:]
        fileprivate var waitCount = 0
    }

    private let content = Mutex(Content())

    /// Notes something, and wakes those who wait.
    func note(_ body: (inout Content) -> Void) {
        let waiting = content.withLock { content in
            body(&content)
            return content.waiting
        }
        for continuation in waiting.values { continuation.yield() }
    }

    /// Forgets what is noted.
    func clear() {
        // Let go outside the lock: it is the user's.
        _ = content.withLock { content in
            defer { (content.commits, content.activities) = ([], []) }
            return (content.commits, content.activities)
        }
    }

    /// Looks at what is noted, and takes of it.
    func take<Result: Sendable>(_ body: @Sendable (inout Content) -> Result) -> Result {
        content.withLock { body(&$0) }
    }

    /// Takes what is noted now, or as soon as it is.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for it.
    ///   - body: Takes it; nil if it isn't there yet.
    /// - Returns: nil if it did not come in time.
    func take<Result: Sendable>(
        within timeout: Duration, _ body: @Sendable (inout Content) -> Result?
    ) async -> Result? {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let token = content.withLock { content in
            content.waitCount += 1
            content.waiting[content.waitCount] = continuation
            return content.waitCount
        }
        defer { content.withLock { _ = $0.waiting.removeValue(forKey: token) } }
        let deadline = Deadline(in: timeout) { continuation.finish() }
        defer { deadline.cancel() }
        if let result = take(body) { return result }
        for await _ in stream {
            if let result = take(body) { return result }
        }
        return take(body)
    }
}

/// Notes what a store does.
struct JournalTap<State: Conflux.State, Value: Sendable>: Middleware {
    let journal: Journal<State, Value>
    /// Reads the value that a commit left; called in the lane.
    let read: @Sendable (CommittedAction<State>) -> Value

    func didCommit<S: Conflux.State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
        guard let commit = commit as? CommittedAction<State> else { return }
        let name = commit.label.flatMap { $0.name.isEmpty ? nil : $0.name }
        let entry = JournalCommit<State, Value>(
            action: commit.action, name: name ?? ValueText.line(of: commit.action),
            sequence: commit.context.sequence, value: read(commit), refusal: refusal)
        journal.note { $0.commits.append(entry) }
    }

    func didEmit(_ activity: EmittedActivity) {
        journal.note { $0.activities.append(activity.value) }
    }
}
