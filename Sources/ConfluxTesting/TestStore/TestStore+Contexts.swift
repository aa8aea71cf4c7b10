import Conflux

/// Steps whose closures get the action's context: for a state that uses the time or random numbers.
extension TestStore {
    /// Dispatches an action to the store, waits until it is committed, and compares the resulting value
    /// with what the test states, which may take the time and the random numbers from the action's
    /// context.
    ///
    /// ```swift
    /// await dice.send(.roll) { dice, context in
    ///     var random = context.random
    ///     dice.last = Int.random(in: 1...6, using: &random)
    ///     dice.rolledAt = context.timestamp.rawValue
    /// }
    /// ```
    ///
    /// The context is the one that the state got: its time is ``time``, and its random numbers differ in each store. To
    /// test what a state does with given random numbers, you need no store: call the model's `check` or `apply` with an
    /// `ActionContext(timestamp:seed:)`.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - change: Turns the value before the action into the expected value. If ``exhaustivity`` is off, it gets the
    ///     value after the action, and sets the parts that it expects.
    public func send(
        _ action: State.Action, isolation: isolated (any Actor)? = #isolation,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column, _ change: @escaping (inout Value, ActionContext) throws -> Void
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await send(action, change, at: place)
    }

    /// Waits for the next commit of an action that the test did not send, and compares it with what the
    /// test states, which may take the time and the random numbers from the action's context.
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
        _ change: @escaping (inout Value, ActionContext) throws -> Void
    ) async where State.Action: Equatable & Sendable {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await receive(expected, isRefused: isRefused, change, at: place)
    }

    /// Waits for the next commit of an action that the test did not send, and checks the action with a function. The
    /// closure may take the time and the random numbers from the action's context.
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
        _ change: @escaping (inout Value, ActionContext) throws -> Void
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await receive(where: isExpected, isRefused: isRefused, change, at: place)
    }
}

/// The same steps for actions that each have their own type.
extension TestStore
where State: ValueHolder, State.Value: ReducedModel, State.Action == TypedAction<State.Value> {
    /// Dispatches an action of a type that has a reducer, like `send` with a `TypedAction`. The closure may take the
    /// time and the random numbers from the action's context.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - change: Turns the value before the action into the expected value.
    @_disfavoredOverload
    public func send(
        _ action: some Codable & Sendable, isolation: isolated (any Actor)? = #isolation,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column, _ change: @escaping (inout Value, ActionContext) throws -> Void
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await send(TypedAction(action), change, at: place)
    }

    /// Waits for the next commit of an action that the test did not send, and compares it with what the
    /// test states, which may take the time and the random numbers from the action's context.
    ///
    /// - Parameters:
    ///   - expected: The action.
    ///   - isRefused: Whether it was refused.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - change: Turns the value before the action into the expected value, as for `send`.
    @_disfavoredOverload
    public func receive<Action: Codable & Equatable & Sendable>(
        _ expected: Action, isRefused: Bool = false, isolation: isolated (any Actor)? = #isolation,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column, _ change: @escaping (inout Value, ActionContext) throws -> Void
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await receive(typed: expected, isRefused: isRefused, change, at: place)
    }
}

// MARK: What steps do, with a context or without

extension TestStore {
    func send(
        _ action: State.Action, _ change: Expectation?, at place: SourcePlace,
        isolation: isolated (any Actor)? = #isolation
    ) async {
        let name = ValueText.quotation(of: action)
        guard await begin(before: "\(name) is sent", at: place) else { return }
        switch await end(of: store.actions.dispatch(action)) {
        case .success(let receipt):
            guard let commit = takeCommit(receipt.sequence, name, at: place) else { return }
            judge(commit, after: name, change, at: place)
        case .failure(let error):
            if let sequence = error.receipt?.sequence { _ = takeCommit(sequence, name, at: place) }
            reporter.report(
                """
                \(Self.begun(name)) was not committed: \(error)

                If that is right, say so: `send(_:failing: .\(error.code))`.
                """, at: place)
        case nil: reportSilence(of: name, at: place)
        }
    }

    func receive(
        _ expected: State.Action, isRefused: Bool, _ change: Expectation?, at place: SourcePlace,
        isolation: isolated (any Actor)? = #isolation
    ) async where State.Action: Equatable & Sendable {
        let name = ValueText.quotation(of: expected)
        await receive(name, isRefused: isRefused, at: place, change) { commit in
            commit.action == expected
        } mismatch: { commit in
            Difference.text(expected: expected, actual: commit.action)
        }
    }

    func receive(
        where isExpected: @Sendable (State.Action) -> Bool, isRefused: Bool, _ change: Expectation?,
        at place: SourcePlace, isolation: isolated (any Actor)? = #isolation
    ) async {
        await receive(
            "an action as the test describes it", isRefused: isRefused, at: place, change
        ) { commit in
            isExpected(commit.action)
        } mismatch: { commit in
            "    \(commit.name)"
        }
    }
}

extension TestStore
where State: ValueHolder, State.Value: ReducedModel, State.Action == TypedAction<State.Value> {
    func receive<Action: Codable & Equatable & Sendable>(
        typed expected: Action, isRefused: Bool, _ change: Expectation?, at place: SourcePlace,
        isolation: isolated (any Actor)? = #isolation
    ) async {
        let name = ValueText.quotation(of: expected)
        await receive(name, isRefused: isRefused, at: place, change) { commit in
            commit.action.value as? Action == expected
        } mismatch: { commit in
            Difference.text(expected: expected, actual: commit.action.value)
        }
    }
}
