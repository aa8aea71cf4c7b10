import Conflux

/// Steps for actions that each have their own type.
extension TestStore
where State: ValueHolder, State.Value: ReducedModel, State.Action == TypedAction<State.Value> {
    /// Dispatches an action of a type that has a reducer, like `send` with a `TypedAction`.
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
        column: UInt = #column, _ change: ((inout Value) throws -> Void)? = nil
    ) async {
        await send(
            TypedAction(action), isolation: isolation, fileID: fileID, filePath: filePath,
            line: line, column: column, change)
    }

    /// Dispatches an action that fails. Its type need not have a reducer.
    ///
    /// - Parameters:
    ///   - action: The action, which fails.
    ///   - code: The expected error's code.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - examine: Examines the error, if it has the code.
    @_disfavoredOverload
    public func send(
        _ action: some Codable & Sendable, failing code: DispatchError.Code,
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, line: UInt = #line, column: UInt = #column,
        _ examine: ((DispatchError) throws -> Void)? = nil
    ) async {
        await send(
            TypedAction(action), failing: code, isolation: isolation, fileID: fileID,
            filePath: filePath, line: line, column: column, examine)
    }

    /// Waits for the next commit of an action that the test did not send, and compares it with what the
    /// test states.
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
        column: UInt = #column, _ change: ((inout Value) throws -> Void)? = nil
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await receive(typed: expected, isRefused: isRefused, Self.plain(change), at: place)
    }
}
