extension Scope {
    /// Changes a storage by a function, in a mode. It dispatches an action that is that function.
    ///
    /// ```swift
    /// scope.dispatch(to: screen, mode: .serial) { $0.count += 1 }
    /// ```
    ///
    /// - Parameters:
    ///   - storage: A storage of this scope. A storage of another scope ends the program with a
    ///     message.
    ///   - mode: When and where it is changed.
    ///   - others: What has to end first: other dispatches, and operations.
    ///   - name: What is done, in a word, for middleware.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    ///   - change: Gets a draft of the value. Called once, holding no lock, where the mode says. If it throws,
    ///     nothing changes, and the receipt throws a refusal with that error as the reason.
    ///   - next: Called once when the change has ended, as for an action.
    /// - Returns: A handle to wait for the end with. You may drop it.
    @discardableResult
    public func dispatch<Value>(
        to storage: Storage<Value>, mode: DispatchMode = .async, after others: DispatchHandle...,
        name: String = "", file: StaticString = #file, function: StaticString = #function,
        line: UInt = #line, change: @escaping @Sendable (inout StorageDraft<Value>) throws -> Void,
        then next: (@Sendable (Result<Receipt, DispatchError>) -> Void)? = nil
    ) -> DispatchHandle {
        let label = DispatchLabel(name, file: file, function: function, line: line)
        return dispatch(StorageCommit(change), to: storage, mode, after: others, label, then: next)
    }

    /// Pauses the flow, and changes a storage by a function as the holder. If the value stays the
    /// same, the lock is released automatically. Otherwise an observer of the change
    /// (``lockInForce``) or the lock's holder releases it.
    ///
    /// - Parameters:
    ///   - storage: A storage of this scope.
    ///   - change: Gets a draft of the value. Called once, holding no lock, when and where an action would be
    ///     committed.
    /// - Returns: The lock. You may drop it, as with an action.
    @discardableResult
    public func lock<Value: Equatable>(
        changing storage: Storage<Value>,
        _ change: @escaping @Sendable (inout StorageDraft<Value>) throws -> Void
    ) -> FlowLock {
        lockHere(dispatching: StorageCommit(change), to: storage)
    }
}
