import Conflux
import Synchronization

/// A commit of a store under test.
// Sendable: the contract of `State.Action` allows a commit on another thread; all else is immutable.
struct JournalCommit<State: Conflux.State, Value: Sendable>: @unchecked Sendable {
    let action: State.Action
    let label: String?
    let context: ActionContext
    /// The value before this commit.
    let before: Value
    /// The value after this commit.
    let value: Value
    /// Why the action was refused; nil if it was not.
    let refusal: (any Error)?

    /// The dispatch's label, or else the text of the action.
    var name: String { label ?? ValueText.line(of: action) }
    /// The name for use in a sentence.
    var quotation: String { label.map { "`\($0)`" } ?? ValueText.quotation(of: action) }
}

/// What a store under test did and the test has not stated yet.
///
/// Commits and activities are separate lists, since their relative order depends on where observers run. No user code
/// runs under the lock. If the test never takes them, only the newest are kept.
final class Journal<State: Conflux.State, Value: Sendable>: Sendable {
    typealias Commit = JournalCommit<State, Value>

    /// The most commits that are kept, and the most activities.
    static var keptMax: Int { 65_536 }

    struct Content: Sendable {
        /// The value after the last commit; nil until the value was read for the first time.
        var last: Value?
        var commits: [Commit] = []
        var activities: [any Sendable] = []
        /// How many changes were noted in all.
        fileprivate(set) var noteCount = 0
        /// The tasks that wait for a change.
        fileprivate var waiting: [Int: AsyncStream<Void>.Continuation] = [:]
        fileprivate var waitCount = 0
    }

    private let content = Mutex(Content())

    /// The current content.
    var present: Content { content.withLock { $0 } }

    // MARK: Noting

    /// Begins with a value, and discards what was noted before. Called in the lane.
    func begin(with value: Value) {
        // The old content is returned, so that the user's values are released outside the lock.
        _ = note { content in
            defer { (content.commits, content.activities) = ([], []) }
            content.last = value
            return (content.commits, content.activities)
        }
    }

    /// Notes a commit. Called in the lane.
    func note(
        _ action: State.Action, _ label: String?, _ context: ActionContext, _ value: Value,
        _ refusal: (any Error)?
    ) {
        let before = present.last ?? value
        let commit = Commit(
            action: action, label: label, context: context, before: before, value: value,
            refusal: refusal)
        _ = note { content -> Commit? in
            content.last = value
            content.commits.append(commit)
            return content.commits.count > Self.keptMax ? content.commits.removeFirst() : nil
        }
    }

    func note(activity: any Sendable) {
        _ = note { content -> (any Sendable)? in
            content.activities.append(activity)
            return content.activities.count > Self.keptMax ? content.activities.removeFirst() : nil
        }
    }

    private func note<Result: Sendable>(_ body: @Sendable (inout Content) -> Result) -> Result {
        let (result, waiting) = content.withLock { content in
            content.noteCount += 1
            return (body(&content), content.waiting)
        }
        for continuation in waiting.values { continuation.yield() }
        return result
    }

    /// Replaces the value that counts as the one after the last commit.
    func correct(to value: Value) {
        content.withLock { $0.last = value }
    }

    // MARK: Taking

    /// Removes commits, activities or both. Only one task at a time may do so.
    func remove(commits: Range<Int> = 0..<0, activities: Range<Int> = 0..<0) {
        content.withLock { content in
            content.commits.removeSubrange(commits.clamped(to: content.commits.indices))
            content.activities.removeSubrange(activities.clamped(to: content.activities.indices))
        }
    }

    /// Waits until the content has what is wanted.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait.
    ///   - isolation: The caller's actor.
    ///   - find: Finds what is wanted; nil if it is not there yet.
    /// - Returns: What was found; nil if it was not there in time.
    func wait<Result>(
        within timeout: Duration, isolation: isolated (any Actor)? = #isolation,
        _ find: (Content) -> Result?
    ) async -> Result? {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let token = content.withLock { content in
            content.waitCount += 1
            content.waiting[content.waitCount] = continuation
            return content.waitCount
        }
        defer { content.withLock { _ = $0.waiting.removeValue(forKey: token) } }
        if let result = find(present) { return result }
        let deadline = Deadline(in: timeout) { continuation.finish() }
        defer { deadline.cancel() }
        for await _ in stream {
            if let result = find(present) { return result }
        }
        return find(present)
    }
}

/// Notes in a journal what a store does.
struct JournalTap<State: Conflux.State, Value: Sendable>: Middleware {
    let journal: Journal<State, Value>
    /// Reads the value after a commit; called in the lane.
    let read: @Sendable (CommittedAction<State>) -> Value

    func didCommit<S: Conflux.State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
        guard let commit = commit as? CommittedAction<State> else { return }
        let label = commit.label.flatMap { $0.name.isEmpty ? nil : $0.name }
        journal.note(commit.action, label, commit.context, read(commit), refusal)
    }

    func didEmit(_ activity: any Sendable, from store: StoreIdentity, label: DispatchLabel) {
        journal.note(activity: activity)
    }
}
