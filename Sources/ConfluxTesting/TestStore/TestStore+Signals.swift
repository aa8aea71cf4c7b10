import Conflux

/// Observes what a state of your own sends.
extension TestStore {
    /// Observes a signal from now on: the test has to receive each of its values in turn, like an activity.
    ///
    /// A test store observes the activities of its store by itself, but the `Sink` of a class only after
    /// this call.
    ///
    /// ```swift
    /// let counter = TestStore(store) { $0.count }
    /// await counter.hear(store.computed.milestones)
    ///
    /// await counter.send(.add(amount: 100)) { $0 = 100 }
    /// await counter.receive(activity: Milestone(reached: 100))
    /// ```
    ///
    /// A variable sends its latest value at once, so that is the first value to receive. Values of two signals can't
    /// be told apart if they have the same type: give them different types with `map`.
    ///
    /// The test store records the signal's values on the thread that sends them.
    /// ``finish(isolation:fileID:filePath:line:column:)`` does not wait for a signal that sends on an
    /// executor or a queue of its own: receive its values.
    ///
    /// - Parameters:
    ///   - signal: The signal. The test store observes it until it is released.
    ///   - isolation: The actor of the test: the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    public func hear<Sent: Sendable>(
        _ signal: Signal<Sent>, isolation: isolated (any Actor)? = #isolation,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        // What was sent before the first read of the value does not concern the test.
        guard await begin(at: place) else { return }
        let observation = signal.observe { [journal] value in journal.note(activity: value) }
        content.withLock { $0.heard.append(observation) }
    }
}
