import Conflux
import ConfluxVocabulary
import Synchronization

/// Comparing what the store does with what the test says, and saying what is wrong.
extension TestStore {
    // MARK: Waiting

    /// How a dispatch ends; nil if it does not in time.
    func end(
        of handle: DispatchHandle, isolation: isolated (any Actor)? = #isolation
    ) async -> Result<Receipt, DispatchError>? {
        let timeout = timeout
        let waiting = Task { () async -> Result<Receipt, DispatchError> in
            do throws(DispatchError) {
                return .success(try await handle.receipt())
            } catch {
                return .failure(error)
            }
        }
        let deadline = Deadline(in: timeout) { waiting.cancel() }
        let result = await waiting.value
        deadline.cancel()
        if case .failure(let error) = result, error.code == .cancelled { return nil }
        return result
    }

    /// The value as it is behind all that is in the store's line.
    func present(
        at place: SourcePlace, isolation: isolated (any Actor)? = #isolation
    ) async -> Value? {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self)
        let reading = reading
        store.core.inspect { state, _ in
            if let state { continuation.yield(reading(state)) }
            continuation.finish()
        }
        let timeout = timeout
        let deadline = Deadline(in: timeout) { continuation.finish() }
        defer { deadline.cancel() }
        for await value in stream { return value }
        reporter.report(
            """
            The store did nothing for \(timeout). Does a commit wait for something, or is the flow paused \
            by a lock?
            """, at: place)
        return nil
    }

    // MARK: Taking

    /// Takes the commit of an action that the test sent, and passes over those before it.
    func takeCommit(
        _ sequence: SequenceNumber, _ name: String, at place: SourcePlace
    ) -> Journal<State, Value>.Commit? {
        let found = journal.take { content -> (Journal<State, Value>.Commit, [String])? in
            guard let index = content.commits.firstIndex(where: { $0.sequence == sequence })
            else { return nil }
            let commit = content.commits[index]
            let earlier = content.commits[..<index].map(\.name)
            content.commits.removeFirst(index + 1)
            return (commit, earlier)
        }
        guard let (commit, earlier) = found else {
            reporter.report(
                "`\(name)` was committed, and this TestStore did not hear of it: was its store released?",
                at: place)
            return nil
        }
        if !earlier.isEmpty, exhaustivity == .on {
            reportUnsaid(earlier, [], before: "`\(name)` is sent", at: place)
        }
        return commit
    }

    /// Takes the next commit that the test did not send, and judges it.
    func receive(
        _ expectation: String, isRefused: Bool, at place: SourcePlace,
        _ change: ((inout Value) throws -> Void)?,
        isolation: isolated (any Actor)? = #isolation,
        matches: @Sendable (Journal<State, Value>.Commit) -> Bool,
        mismatch: (Journal<State, Value>.Commit) -> String
    ) async {
        let isExhaustive = exhaustivity == .on
        let commit = await journal.take(within: timeout) { content in
            if isExhaustive { return content.commits.isEmpty ? nil : content.commits.removeFirst() }
            guard let index = content.commits.firstIndex(where: matches) else { return nil }
            defer { content.commits.removeFirst(index + 1) }
            return content.commits[index]
        }
        guard let commit else {
            return reporter.report(
                "Received nothing for \(timeout): expected \(expectation).\(listRest())", at: place)
        }
        guard matches(commit) else {
            reporter.report(
                """
                Received another action than the test says, which is \(expectation):

                \(mismatch(commit))
                """, at: place)
            return goOn(from: commit.value)
        }
        if let refusal = commit.refusal, !isRefused {
            reporter.report(
                """
                `\(commit.name)` was refused: \(refusal)

                If that is right, say so: `isRefused: true`.
                """, at: place)
            return goOn(from: commit.value)
        }
        if commit.refusal == nil, isRefused {
            reporter.report(
                "`\(commit.name)` was committed, and the test says that it is refused.", at: place)
            return goOn(from: commit.value)
        }
        judge(commit.value, after: "`\(commit.name)`", change, at: place)
    }

    // MARK: Judging

    /// Compares the value that a step left with what the test says, and goes on from it.
    func judge(
        _ actual: Value, after step: String, _ change: ((inout Value) throws -> Void)?,
        at place: SourcePlace
    ) {
        let before = value
        goOn(from: actual)
        let isExhaustive = exhaustivity == .on
        guard let change else {
            if isExhaustive, actual != before {
                reporter.report(
                    """
                    \(step) changed the value, and the test says nothing of it:

                    \(Difference.text(expected: before, actual: actual))

                    If that is right, say what changes in a trailing closure: `{ $0.… = … }`.
                    """, at: place)
            }
            return
        }
        var expected = isExhaustive ? before : actual
        do {
            try change(&expected)
        } catch {
            return reporter.report("The test's function threw: \(error)", at: place)
        }
        if expected != actual {
            reporter.report(
                """
                The value after \(step) is not what the test says:

                \(Difference.text(expected: expected, actual: actual))
                """, at: place)
        } else if isExhaustive, expected == before {
            reporter.report(
                """
                The value is the same after \(step) as before, and so is what the test's closure makes of \
                it. Leave the closure out if nothing is to change.
                """, at: place)
        }
    }

    func goOn(from value: Value) {
        content.withLock { $0.value = value }
    }

    /// Fails the test if the value is another one than was said, though all commits were.
    func judgeUnsaid(_ actual: Value, at place: SourcePlace) {
        let said = value
        goOn(from: actual)
        if actual == said { return }
        reporter.report(
            """
            The value was changed past the store's actions:

            \(Difference.text(expected: said, actual: actual))

            If that is right, say so: `expect { $0.… = … }`.
            """, at: place)
    }

    // MARK: What is left

    /// Fails the test if there is anything that it has not said, before it goes on.
    func passOverRest(before step: String, at place: SourcePlace) {
        guard exhaustivity == .on else { return }
        let (commits, activities) = takeRest()
        if let last = commits.last { goOn(from: last.value) }
        reportUnsaid(commits.map(\.name), activities, before: step, at: place)
    }

    /// Fails the test if there is anything that it has not said at its end.
    ///
    /// - Returns: Whether there is.
    @discardableResult
    func reportRest(at place: SourcePlace) -> Bool {
        guard exhaustivity == .on else { return false }
        let (commits, activities) = takeRest()
        if let last = commits.last { goOn(from: last.value) }
        reportUnsaid(commits.map(\.name), activities, before: "the test ends", at: place)
        return !(commits.isEmpty && activities.isEmpty)
    }

    private func takeRest() -> ([Journal<State, Value>.Commit], [String]) {
        journal.take { content in
            defer { (content.commits, content.activities) = ([], []) }
            return (content.commits, content.activities.map { ValueText.line(of: $0) })
        }
    }

    private func reportUnsaid(
        _ commits: [String], _ activities: [String], before step: String, at place: SourcePlace
    ) {
        if commits.isEmpty, activities.isEmpty { return }
        reporter.report(
            """
            The store did more than the test says before \(step):

            \(Self.list(commits, activities))

            Say so in its turn: `receive(…)`, or `receive(activity: …)`. A test that is not about it sets \
            `exhaustivity` to `.off`.
            """, at: place)
    }

    /// What there is besides what was waited for.
    func listRest() -> String {
        let (commits, activities) = journal.take { content in
            (content.commits.map(\.name), content.activities.map { ValueText.line(of: $0) })
        }
        if commits.isEmpty, activities.isEmpty { return "" }
        return " What there is:\n\n\(Self.list(commits, activities))"
    }

    private static func list(_ commits: [String], _ activities: [String]) -> String {
        let lines = commits.map { "    committed \($0)" } + activities.map { "    emitted \($0)" }
        let rest = lines.count > 20 ? ["    … (\(lines.count - 20) more)"] : []
        return (lines.prefix(20) + rest).joined(separator: "\n")
    }

    func reportSilence(of name: String, at place: SourcePlace) {
        reporter.report(
            """
            `\(name)` was not committed within \(timeout). Is the flow paused by a lock, does the store \
            wait for another one, or is its queue busy? If it only takes long, raise `timeout`.
            """, at: place)
    }
}
