import Conflux
import ConfluxVocabulary
import Synchronization

/// A commit that a store under test made.
// Sendable: that actions may be committed on another thread is the contract of `State.Action`; all else
// is immutable.
struct JournalCommit<State: Conflux.State, Value: Sendable>: @unchecked Sendable {
    let action: State.Action
    let label: String?
    let context: ActionContext
    /// The value that the commit before left.
    let before: Value
    /// The value that it left.
    let value: Value
    /// Why it was refused; nil if it was not.
    let refusal: (any Error)?

    /// What the dispatcher called it, or the action as it describes itself.
    var name: String { label ?? ValueText.line(of: action) }
    /// The name in a sentence.
    var quotation: String { label.map { "`\($0)`" } ?? ValueText.quotation(of: action) }
}

/// What a store under test did and the test has not said yet.
///
/// Commits and activities are kept apart: how the two follow each other depends on where observers run. No
/// code of the user's runs under the lock. Of what a test never takes, the newest is kept.
final class Journal<State: Conflux.State, Value: Sendable>: Sendable {
    typealias Commit = JournalCommit<State, Value>

    /// How many commits, and how many activities, are kept.
    static var keptMax: Int { 65_536 }

    struct Content: Sendable {
        /// The value that the last commit left; nil until the first look at it.
        var last: Value?
        var commits: [Commit] = []
        var activities: [any Sendable] = []
        /// How much was noted at all.
        fileprivate(set) var noteCount = 0
        /// Those who wait for more.
        fileprivate var waiting: [Int: AsyncStream<Void>.Continuation] = [:]
        fileprivate var waitCount = 0
    }

    private let content = Mutex(Content())

    /// What is noted.
    var present: Content { content.withLock { $0 } }

    // MARK: Noting

    /// Begins with a value, and forgets what was noted before. Called in the lane.
    func begin(with value: Value) {
        // Let go outside the lock: it is the user's.
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

    /// Takes another value for the one that the last commit left.
    func correct(to value: Value) {
        content.withLock { $0.last = value }
    }

    // MARK: Taking

    /// Takes out commits, or activities, or both. One task takes at a time.
    func remove(commits: Range<Int> = 0..<0, activities: Range<Int> = 0..<0) {
        content.withLock { content in
            content.commits.removeSubrange(commits.clamped(to: content.commits.indices))
            content.activities.removeSubrange(activities.clamped(to: content.activities.indices))
        }
    }

    /// Waits until what is noted is as wanted.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait.
    ///   - isolation: The caller's actor.
    ///   - find: Finds what is wanted; nil if it isn't there yet.
    /// - Returns: What was found; nil if it did not come in time.
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

/// Notes what a store does.
struct JournalTap<State: Conflux.State, Value: Sendable>: Middleware {
    let journal: Journal<State, Value>
    /// Reads the value that a commit left; called in the lane.
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
