import Conflux

extension TestStore {
    /// Tests a new store of a model, in the current scope.
    ///
    /// - Parameters:
    ///   - model: The model at first.
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
    /// The test has to receive the commits that it makes by `Store.commit` and the like: see
    /// ``receive(commit:isRefused:isolation:fileID:filePath:line:column:_:)``.
    ///
    /// - Parameters:
    ///   - value: The value at first.
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

    /// Tests an existing store of a model, or an existing storage.
    ///
    /// - Parameters:
    ///   - store: The store. The test has to state what it does from now on.
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

    /// Tests a part of the value of a store of a model, or of a storage.
    ///
    /// ```swift
    /// let counts = TestStore(stock) { $0.counts }
    /// ```
    ///
    /// - Parameters:
    ///   - store: The store. The test has to state what it does from now on.
    ///   - fileID: The file of the test.
    ///   - filePath: The file of the test.
    ///   - line: The line of the test.
    ///   - column: The column of the test.
    ///   - reading: Reads the part. The store calls it in its lane after each commit.
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
            // In a transaction, the store's own value may already be that of a later commit.
            reading(commit.result as? State.Value ?? state._read { $0 })
        }
    }
}
