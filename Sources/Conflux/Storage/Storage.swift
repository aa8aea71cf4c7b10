extension Store {
    /// Makes a storage: `Storage(Screen())`.
    ///
    /// - Parameters:
    ///   - value: What is held at first.
    ///   - executor: Where changes are committed; at once, on the committing thread, unless given.
    @_disfavoredOverload
    public convenience init<Value>(
        _ value: Value, executor: Executor = .immediate
    ) where State == StorageState<Value> {
        self.init(state: State(value), mutations: State.Mutations(), executor: executor)
    }

    /// Makes a storage of a value that is a model. Functions change it then, and no actions.
    @available(
        *, deprecated,
        message: """
            A storage takes no actions of a model. Make the model's store: ModelStore(_:) or \
            Store(_:).
            """
    )
    @_disfavoredOverload
    public convenience init<Value: Model>(
        _ value: Value, executor: Executor = .immediate
    ) where State == StorageState<Value> {
        self.init(state: State(value), mutations: State.Mutations(), executor: executor)
    }

    /// Changes the value by a function, as one commit that notifies observers once. May be called
    /// on any thread; the commits of one thread keep their order.
    ///
    /// - Parameters:
    ///   - name: What is done, in a word, for middleware.
    ///   - description: What is done, in a sentence.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    ///   - change: Gets a draft of the value. Called once, holding no lock, when and where an
    ///     action would be committed (as `dispatch(action:)` of ``Actions`` says): on `.immediate`
    ///     before this returns. If it throws, nothing changes, and ``DispatchHandle/receipt(within:)``
    ///     throws a refusal with that error as the reason.
    /// - Returns: A handle to wait for the end with. You may drop it.
    @discardableResult
    public func commit<Value>(
        _ name: String = "", _ description: String = "", file: StaticString = #file,
        function: StaticString = #function, line: UInt = #line,
        _ change: @escaping @Sendable (inout StorageDraft<Value>) throws -> Void
    ) -> DispatchHandle where State == StorageState<Value> {
        core.dispatchTracked(
            StorageCommit(change),
            label: DispatchLabel(name, description, file: file, function: function, line: line))
    }

    /// Replaces the whole value, in a commit with the name `replace`. When, where and in which
    /// order it is committed is as for ``commit(_:_:file:function:line:_:)``. May be called on any
    /// thread.
    ///
    /// - Parameters:
    ///   - value: The other value.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    /// - Returns: A handle to wait for the end with. You may drop it.
    @discardableResult
    public func replace<Value>(
        _ value: Value, file: StaticString = #file, function: StaticString = #function,
        line: UInt = #line
    ) -> DispatchHandle where State == StorageState<Value> {
        commit("replace", file: file, function: function, line: line) { $0.replace(value) }
    }

    /// Sets a part of the value, in a commit with the name `update`. When, where and in which order
    /// it is committed is as for ``commit(_:_:file:function:line:_:)``. May be called on any
    /// thread.
    ///
    /// - Parameters:
    ///   - part: Which part.
    ///   - new: What it becomes.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    /// - Returns: A handle to wait for the end with. You may drop it.
    @discardableResult
    public func update<Value, Part: Sendable>(
        _ part: any WritableKeyPath<Value, Part> & Sendable, to new: Part,
        file: StaticString = #file, function: StaticString = #function, line: UInt = #line
    ) -> DispatchHandle where State == StorageState<Value> {
        commit("update", file: file, function: function, line: line) { $0.update(part, to: new) }
    }

    /// Sets a part of the value if that changes it; otherwise nobody is notified. The commit has
    /// the name `updateIfChanged`. When, where and in which order it is committed is as for
    /// ``commit(_:_:file:function:line:_:)``. May be called on any thread.
    ///
    /// - Parameters:
    ///   - part: Which part.
    ///   - new: What it becomes.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    ///   - isSame: Whether the two are the same. Called in the store's lane, holding no lock.
    /// - Returns: A handle to wait for the end with. You may drop it.
    @discardableResult
    public func updateIfChanged<Value, Part: Sendable>(
        _ part: any WritableKeyPath<Value, Part> & Sendable, to new: Part,
        file: StaticString = #file, function: StaticString = #function, line: UInt = #line,
        isSame: @escaping @Sendable (Part, Part) -> Bool
    ) -> DispatchHandle where State == StorageState<Value> {
        commit("updateIfChanged", file: file, function: function, line: line) {
            $0.updateIfChanged(part, to: new, isSame: isSame)
        }
    }

    /// Sets a part of the value if it differs from the former one; otherwise nobody is notified.
    @discardableResult
    public func updateIfChanged<Value, Part: Equatable & Sendable>(
        _ part: any WritableKeyPath<Value, Part> & Sendable, to new: Part,
        file: StaticString = #file, function: StaticString = #function, line: UInt = #line
    ) -> DispatchHandle where State == StorageState<Value> {
        updateIfChanged(
            part, to: new, file: file, function: function, line: line, isSame: ==)
    }
}
