import Conflux
import ConfluxVocabulary

/// Compares what the store does with what the test states, and reports what is wrong.
extension TestStore {
    // MARK: Taking

    /// Begins a step: fails the test if there is anything that it has not stated.
    ///
    /// - Returns: Whether the store responds; if not, the test has failed.
    func begin(
        before step: String? = nil, at place: SourcePlace,
        isolation: isolated (any Actor)? = #isolation
    ) async -> Bool {
        guard await hasBegun(at: place) else { return false }
        if let step, exhaustivity == .on { reportUnsaid(before: step, at: place) }
        return true
    }

    /// Takes the commit of an action that the test sent. The test still has to receive earlier commits.
    func takeCommit(
        _ sequence: SequenceNumber, _ quotation: String, at place: SourcePlace
    ) -> Journal<State, Value>.Commit? {
        let commits = journal.present.commits
        guard let index = commits.firstIndex(where: { $0.context.sequence == sequence }) else {
            reporter.report(
                """
                \(Self.begun(quotation)) was committed, and this TestStore did not hear of it. Has a \
                replica taken it over with a snapshot?
                """, at: place)
            return nil
        }
        let first = exhaustivity == .on ? index : 0
        journal.remove(commits: first..<(index + 1))
        return commits[index]
    }

    /// Takes the next commit that the test did not send, and compares it.
    func receive(
        _ expectation: String, isRefused: Bool, at place: SourcePlace, _ change: Expectation?,
        isolation: isolated (any Actor)? = #isolation,
        matches: (Journal<State, Value>.Commit) -> Bool,
        mismatch: (Journal<State, Value>.Commit) -> String
    ) async {
        guard await begin(at: place) else { return }
        let isExhaustive = exhaustivity == .on
        let found = await journal.wait(within: timeout) { content in
            isExhaustive
                ? content.commits.indices.first : content.commits.firstIndex(where: matches)
        }
        guard let found else {
            return reporter.report(
                """
                Received nothing for \(timeout): expected \(expectation).\(listRest() ?? " ")If it only \
                takes long, raise `timeout`.
                """, at: place)
        }
        let commit = journal.present.commits[found]
        journal.remove(commits: 0..<(found + 1))
        guard matches(commit) else {
            return reporter.report(
                """
                Received another action than the test says, which is \(expectation):

                \(mismatch(commit))

                If that comes first, receive it first. \(Self.adviceOnExhaustivity)
                """, at: place)
        }
        if let refusal = commit.refusal, !isRefused {
            return reporter.report(
                """
                \(Self.begun(commit.quotation)) was refused: \(refusal)

                If that is right, say so: `isRefused: true`.
                """, at: place)
        }
        if commit.refusal == nil, isRefused {
            return reporter.report(
                """
                \(Self.begun(commit.quotation)) was committed, and the test says that it is refused. Is there \
                a check that should refuse it? If not, leave out `isRefused: true`.
                """, at: place)
        }
        judge(commit, after: commit.quotation, change, at: place)
    }

    // MARK: Judging

    /// A step's closure: it turns the value before a commit into the expected value.
    typealias Expectation = (inout Value, ActionContext) throws -> Void

    /// Makes an expectation of a closure without a context.
    static func plain(_ change: ((inout Value) throws -> Void)?) -> Expectation? {
        change.map { change in { value, _ in try change(&value) } }
    }

    /// Compares what a commit did with what the test states.
    func judge(
        _ commit: Journal<State, Value>.Commit, after step: String, _ change: Expectation?,
        at place: SourcePlace
    ) {
        judge(
            from: commit.before, to: commit.value, after: step,
            change.map { change in { value in try change(&value, commit.context) } }, at: place)
    }

    /// Compares what a step did with what the test states.
    func judge(
        from before: Value, to actual: Value, after step: String,
        _ change: ((inout Value) throws -> Void)?, at place: SourcePlace
    ) {
        let isExhaustive = exhaustivity == .on
        guard let change else {
            if isExhaustive, actual != before {
                reporter.report(
                    """
                    \(Self.begun(step)) changed the value, and the test says nothing of it:

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
            return reporter.report(
                """
                The test's function threw: \(error)

                It only says what the value becomes: check and unwrap before the step, or behind it.
                """, at: place)
        }
        if expected != actual {
            reporter.report(
                """
                The value after \(step) is not what the test says:

                \(Difference.text(expected: expected, actual: actual))

                If the value is right, fix the closure. Otherwise fix the state.
                """, at: place)
        } else if isExhaustive, expected == before {
            reporter.report(
                """
                The value is the same after \(step) as before, and so is what the test's closure makes of \
                it. Leave the closure out if nothing is to change.
                """, at: place)
        }
    }

    /// Fails the test if the value differs from the one after the last commit.
    func judgeUnsaid(_ actual: Value, at place: SourcePlace) {
        let last = journal.present.last
        journal.correct(to: actual)
        guard let last, actual != last else { return }
        reporter.report(
            """
            The value was changed past the store's actions:

            \(Difference.text(expected: last, actual: actual))

            If that is right, say so: `expect { $0.… = … }`.
            """, at: place)
    }

    // MARK: What is left

    /// Fails the test at its end if there is anything that it has not stated.
    ///
    /// - Returns: Whether there is.
    @discardableResult
    func reportRest(at place: SourcePlace) -> Bool {
        guard exhaustivity == .on else { return false }
        return reportUnsaid(before: "the test ends", at: place)
    }

    /// Fails the test if there is anything that it has not stated, and discards that.
    ///
    /// - Returns: Whether there is.
    @discardableResult
    private func reportUnsaid(before step: String, at place: SourcePlace) -> Bool {
        let rest = journal.present
        if rest.commits.isEmpty, rest.activities.isEmpty { return false }
        journal.remove(commits: rest.commits.indices, activities: rest.activities.indices)
        reporter.report(
            """
            The store did more than the test says before \(step):

            \(Self.list(rest))

            Say so in its turn: `receive(…)`, or `receive(activity: …)`. \(Self.adviceOnExhaustivity)
            """, at: place)
        return true
    }

    /// A list of what the journal has; nil if it has nothing.
    func listRest() -> String? {
        let rest = journal.present
        if rest.commits.isEmpty, rest.activities.isEmpty { return nil }
        return " What there is:\n\n\(Self.list(rest))\n\n"
    }

    static var adviceOnExhaustivity: String {
        "A test that is not about it sets `exhaustivity` to `.off`."
    }

    /// The words with a capital letter, to begin a sentence.
    static func begun(_ words: String) -> String {
        words.prefix(1).uppercased() + words.dropFirst()
    }

    private static func list(_ rest: Journal<State, Value>.Content) -> String {
        let linesMax = 20
        let commits = rest.commits.prefix(linesMax).map { commit in
            "    \(commit.refusal == nil ? "committed" : "refused") \(commit.name)"
        }
        let activities = rest.activities.prefix(max(1, linesMax - commits.count)).map { activity in
            "    emitted \(ValueText.line(of: activity))"
        }
        let more = rest.commits.count + rest.activities.count - commits.count - activities.count
        return (commits + activities + (more > 0 ? ["    … (\(more) more)"] : []))
            .joined(separator: "\n")
    }
}
