import Conflux

/// The steps with which a test states what its store does.
extension TestStore {
    /// Dispatches an action to the store, waits until it is committed, and compares the resulting value
    /// with what the test states.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - change: Turns the value before the action into the expected value. Leave it out if the value does not
    ///     change. If ``exhaustivity`` is off, it gets the value after the action, and sets the parts that it
    ///     expects.
    public func send(
        _ action: State.Action, isolation: isolated (any Actor)? = #isolation,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column, _ change: ((inout Value) throws -> Void)? = nil
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await send(action, Self.plain(change), at: place)
    }

    /// Dispatches an action that fails, for example because the state's check refuses it or middleware stops it.
    ///
    /// The value must stay as it is.
    ///
    /// - Parameters:
    ///   - action: The action, which fails.
    ///   - code: The expected error's code.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - examine: Examines the error, if it has the code. Its `reason` is the error that a check
    ///     threw.
    public func send(
        _ action: State.Action, failing code: DispatchError.Code,
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column,
        _ examine: ((DispatchError) throws -> Void)? = nil
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        let name = ValueText.quotation(of: action)
        guard await begin(before: "\(name) is sent", at: place) else { return }
        switch await end(of: store.actions.dispatch(action)) {
        case .success(let receipt):
            reporter.report(
                """
                \(Self.begun(name)) was committed, and the test says that it fails: `\(code)`. Is there a check \
                that should refuse it? If not, leave out `failing:`.
                """, at: place)
            _ = takeCommit(receipt.sequence, name, at: place)
        case .failure(let error):
            if let sequence = error.receipt?.sequence,
                let commit = takeCommit(sequence, name, at: place)
            {
                judge(commit, after: "\(name), which failed,", nil, at: place)
            }
            guard error.code == code else {
                return reporter.report(
                    """
                    \(Self.begun(name)) failed with another error than the test says, which is \
                    `\(code)`: \(error)

                    If that is right, say so: `failing: .\(error.code)`.
                    """, at: place)
            }
            do {
                try examine?(error)
            } catch {
                reporter.report(
                    """
                    The test's function threw: \(error)

                    It only looks at the error that \(name) failed with: let it record what is wrong with that.
                    """, at: place)
            }
        case nil: reportSilence(of: name, at: place)
        }
    }

    /// Waits for the next commit of an action that the test did not send, such as one that an
    /// observer, middleware or an event dispatched, and compares it with what the test states.
    ///
    /// The state's actions have to be `Equatable`. If they are not, use `receive(where:)`.
    ///
    /// - Parameters:
    ///   - expected: The action.
    ///   - isRefused: Whether the state's check refused it.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - change: Turns the value before the action into the expected value, as for `send`.
    public func receive(
        _ expected: State.Action, isRefused: Bool = false,
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column,
        _ change: ((inout Value) throws -> Void)? = nil
    ) async where State.Action: Equatable & Sendable {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await receive(expected, isRefused: isRefused, Self.plain(change), at: place)
    }

    /// Waits for the next commit of an action that the test did not send, and checks the action with a function.
    ///
    /// - Parameters:
    ///   - isExpected: Whether an action is the expected one.
    ///   - isRefused: Whether the state's check refused it.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - change: Turns the value before the action into the expected value, as for `send`.
    public func receive(
        where isExpected: @Sendable (State.Action) -> Bool, isRefused: Bool = false,
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column,
        _ change: ((inout Value) throws -> Void)? = nil
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await receive(where: isExpected, isRefused: isRefused, Self.plain(change), at: place)
    }

    /// Waits for the next commit of a storage, and checks its name.
    ///
    /// ```swift
    /// screen.store.commit("increment") { $0.update(\.count, to: $0.value.count + 1) }
    /// await screen.receive(commit: "increment") { $0.count = 1 }
    /// ```
    ///
    /// `replace`, `update` and `updateIfChanged` make commits with these names.
    ///
    /// - Parameters:
    ///   - name: The commit's name; empty for a commit without one.
    ///   - isRefused: Whether the commit threw, and so changed nothing.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - change: Turns the value before the action into the expected value, as for `send`.
    public func receive(
        commit name: String, isRefused: Bool = false,
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column,
        _ change: ((inout Value) throws -> Void)? = nil
    ) async where State == StorageState<Value> {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        let expectation = name.isEmpty ? "an unnamed commit" : "a commit \"\(name)\""
        await receive(expectation, isRefused: isRefused, at: place, Self.plain(change)) { commit in
            commit.label ?? "" == name
        } mismatch: { commit in
            "    \(commit.name)"
        }
    }

    /// Waits for the next activity that the store emits, or the next value of a signal that the test
    /// store hears, and compares it with what the test states.
    ///
    /// - Parameters:
    ///   - expected: The activity or the value.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    public func receive<Activity: Equatable & Sendable>(
        activity expected: Activity, isolation: isolated (any Actor)? = #isolation,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        guard await begin(at: place) else { return }
        let isExhaustive = exhaustivity == .on
        let found = await journal.wait(within: timeout) { content in
            isExhaustive
                ? content.activities.indices.first
                : content.activities.firstIndex { $0 as? Activity == expected }
        }
        guard let found else {
            return reporter.report(
                """
                The activity `\(ValueText.line(of: expected))` was not emitted within \(timeout).\
                \(listRest() ?? " ")If it only takes long, raise `timeout`.
                """, at: place)
        }
        let activity = journal.present.activities[found]
        journal.remove(activities: 0..<(found + 1))
        guard activity as? Activity == expected else {
            return reporter.report(
                """
                Another activity was emitted than the test says:

                \(Difference.text(expected: expected, actual: activity))

                If that comes first, receive it first. \(Self.adviceOnExhaustivity)
                """, at: place)
        }
    }

    /// Compares the current value with what the test states, such as after a change without an
    /// action.
    ///
    /// - Parameters:
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - change: Turns the value so far into the expected value, as for `send`.
    public func expect(
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column,
        _ change: (inout Value) throws -> Void
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        guard await begin(before: "the value is looked at", at: place),
            let before = journal.present.last, let value = await present(at: place)
        else { return }
        journal.correct(to: value)
        withoutActuallyEscaping(change) {
            judge(from: before, to: value, after: "all that was committed", $0, at: place)
        }
    }

    /// Ends the test of the store: waits until it has nothing more to do, and fails the test at
    /// everything that it has not stated.
    ///
    /// It waits for actions dispatched to stores of its scope, in any mode, and for all that follows from them. It
    /// does not wait for tasks and queues of your own that have not dispatched yet: wait for them before you call
    /// this.
    ///
    /// - Parameters:
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    public func finish(
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        guard await begin(at: place) else { return }
        let value = await settled(at: place)
        if reportRest(at: place) { return }
        if let value, exhaustivity == .on { judgeUnsaid(value, at: place) }
    }
}
