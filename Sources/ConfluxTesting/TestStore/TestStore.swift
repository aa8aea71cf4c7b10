import Conflux
import Synchronization

/// Drives a store in a test, and fails the test at everything that the store does and the test does not
/// state.
///
/// ```swift
/// @Test(.ownScope) func `what is taken is gone`() async {
///     let stock = TestStore(Stock())
///
///     await stock.send(.add("pear", 3)) { $0.counts["pear"] = 3 }
///     await stock.send(.take("pear", 2)) { $0.counts["pear"] = 1 }
///     await stock.send(.take("pear", 2), failing: .refused)
///     await stock.finish()
/// }
/// ```
///
/// `send` dispatches an action, waits for its commit, and compares the value with what the test states. The test has
/// to *receive*, in turn, each action that it did not send, such as one of an observer, middleware or an event, and
/// each activity that the store emits. The values of a class's `Sink` have to be received once the test observes its
/// signal: ``hear(_:isolation:fileID:filePath:line:column:)``. If the state takes the time or random numbers from its
/// context, the closure may take the context, too: `send(.roll) { dice, context in … }`.
///
/// ``finish(isolation:fileID:filePath:line:column:)`` is a test's last step: it waits for what is under way, and
/// fails the test if anything is left that the test has not stated. Without it, such a failure is reported when the
/// test store is released, at the line where it was made. A test store in a property of an XCTest test case is
/// released only after all tests have ended.
///
/// Give each test a scope of its own. Tests run in parallel; without one they share `Scope.process`, in which a
/// global action reaches each other's stores. In Swift Testing, use the trait `.ownScope` of a test or a suite. In
/// XCTest, run the test in a scope:
///
/// ```swift
/// func testWhatIsTakenIsGone() async {
///     await Scope().run {
///         let stock = TestStore(Stock())
///         await stock.send(.add("pear", 3)) { $0.counts["pear"] = 3 }
///         await stock.finish()
///     }
/// }
/// ```
///
/// Failures go to the framework that runs the test, Swift Testing or XCTest, at the line of the call.
/// After a failure the test store continues from the real value.
///
/// You may call the methods on any thread, one after the other. While a method waits, its thread is free. You can
/// test a node's store in the same way as one without a node.
public final class TestStore<State: Conflux.State, Value: Equatable & Sendable>: Sendable {
    /// How much of what the store does the test has to state.
    public enum Exhaustivity: Sendable, Hashable {
        /// Everything.
        case on
        /// Only some: the test may leave out actions and activities, and the function of a step sets
        /// only the parts that it is about. Actions and activities that the test left out are dropped
        /// once it receives a later one of their kind.
        case off
    }

    struct Content: Sendable {
        var exhaustivity = Exhaustivity.on
        var timeout = Duration.seconds(30)
        /// The observed signals.
        var heard: [any Disposable & Sendable] = []
    }

    /// The store under test.
    public let store: Store<State>
    let journal = Journal<State, Value>()
    let content = Mutex(Content())
    let reporter = FailureReporter()
    /// Reads the current value; called in the lane.
    let reading: @Sendable () -> Value
    private let registration: any Disposable & Sendable
    private let place: SourcePlace

    /// Tests a value that a function reads from a store's computed properties.
    ///
    /// ```swift
    /// let counter = TestStore(store) { $0.count }
    /// ```
    ///
    /// - Parameters:
    ///   - store: The store. The test has to state what it does from now on.
    ///   - fileID: The file of the test.
    ///   - filePath: The file of the test.
    ///   - line: The line of the test.
    ///   - column: The column of the test.
    ///   - computing: Makes the value from what may be read of the state. The store calls it in its lane after each
    ///     commit.
    public convenience init(
        _ store: Store<State>, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
        line: UInt = #line, column: UInt = #column,
        computing: @escaping @Sendable (Computed<State>) -> Value
    ) {
        // Sendable: it is read only in the store's lane, by one thread at a time.
        nonisolated(unsafe) let computed = store.computed
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        self.init(store, at: place) {
            computing(computed)
        } left: { _ in
            computing(computed)
        }
    }

    /// - Parameters:
    ///   - store: The store.
    ///   - place: The place at which the test makes this.
    ///   - reading: Reads the current value; called in the lane.
    ///   - left: Reads the value after a commit; called in the lane.
    init(
        _ store: Store<State>, at place: SourcePlace, reading: @escaping @Sendable () -> Value,
        left: @escaping @Sendable (CommittedAction<State>) -> Value
    ) {
        self.store = store
        self.place = place
        self.reading = reading
        let journal = journal
        registration = store.core.scope.use(JournalTap(journal: journal, read: left), for: store)
        // What was committed before this read is part of the first value.
        store.core.inspect { state, _ in if state != nil { journal.begin(with: reading()) } }
    }

    deinit {
        registration.dispose()
        for observation in content.withLock({ $0.heard }) { observation.dispose() }
        reportRest(at: place)
        if store.core.waitingCount > 0, exhaustivity == .on {
            reporter.report(
                """
                The store has more to do than the test waited for. Let `finish()` be the test's last step: it \
                waits.
                """, at: place)
        }
    }

    /// What the test has to state; everything by default.
    public var exhaustivity: Exhaustivity {
        get { content.withLock { $0.exhaustivity } }
        set { content.withLock { $0.exhaustivity = newValue } }
    }

    /// How long a step waits for what it expects; 30 seconds by default.
    public var timeout: Duration {
        get { content.withLock { $0.timeout } }
        set { content.withLock { $0.timeout = newValue } }
    }
}
