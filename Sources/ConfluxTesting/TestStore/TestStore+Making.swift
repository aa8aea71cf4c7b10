import Conflux

extension TestStore {
    /// Tests a new store of a model, in the current scope.
    ///
    /// - Parameters:
    ///   - model: What the model is at first.
    ///   - fileID: The file of the test.
    ///   - filePath: The file of the test.
    ///   - line: The line of the test.
    ///   - column: The column of the test.
    public convenience init(
        _ model: Value, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
        line: UInt = #line, column: UInt = #column
    ) where Value: Model, State == ModelState<Value> {
        self.init(
            ModelStore(model), fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// Tests a new storage, in the current scope.
    ///
    /// What it does by `Store.commit` and the like is to be received:
    /// see ``receive(commit:isRefused:isolation:fileID:filePath:line:column:_:)``.
    ///
    /// - Parameters:
    ///   - value: What is held at first.
    ///   - fileID: The file of the test.
    ///   - filePath: The file of the test.
    ///   - line: The line of the test.
    ///   - column: The column of the test.
    public convenience init(
        storage value: Value, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
        line: UInt = #line, column: UInt = #column
    ) where State == StorageState<Value> {
        self.init(
            Storage(value), fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// Tests a store of a model, or a storage, that there is.
    ///
    /// - Parameters:
    ///   - store: The store. What it does from now on is to be said by the test.
    ///   - fileID: The file of the test.
    ///   - filePath: The file of the test.
    ///   - line: The line of the test.
    ///   - column: The column of the test.
    public convenience init(
        _ store: Store<State>, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
        line: UInt = #line, column: UInt = #column
    ) where State: ValueHolder, State.Value == Value {
        self.init(store, fileID: fileID, filePath: filePath, line: line, column: column) { $0 }
    }

    /// Tests a part of what a store of a model, or a storage, has.
    ///
    /// ```swift
    /// let counts = TestStore(stock) { $0.counts }
    /// ```
    ///
    /// - Parameters:
    ///   - store: The store. What it does from now on is to be said by the test.
    ///   - fileID: The file of the test.
    ///   - filePath: The file of the test.
    ///   - line: The line of the test.
    ///   - column: The column of the test.
    ///   - reading: The part. Called where the store commits, behind each commit.
    public convenience init(
        _ store: Store<State>, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
        line: UInt = #line, column: UInt = #column,
        reading: @escaping @Sendable (State.Value) -> Value
    ) where State: ValueHolder {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        let state = store.computed.state._state
        self.init(store, at: place) {
            reading(state._read { $0 })
        } left: { commit in
            // In a transaction the value itself may be that of a later commit already.
            reading(commit.result as? State.Value ?? state._read { $0 })
        }
    }
}
