import Conflux
import Dispatch
import Synchronization

/// Drives a store in a test, and fails the test at everything that the store does and the test does not say.
///
/// ```swift
/// @Test func `what is taken is gone`() async {
///     let stock = TestStore(Stock())
///
///     await stock.send(.add("pear", 3)) { $0.counts["pear"] = 3 }
///     await stock.send(.take("pear", 2)) { $0.counts["pear"] = 1 }
///     await stock.send(.take("pear", 2), failing: .refused)
///     await stock.finish()
/// }
/// ```
///
/// ``send(_:isolation:fileID:filePath:line:column:_:)`` dispatches an action, waits for its commit, and
/// compares the value with what the test says it becomes. What reaches the store without being sent by the
/// test, as from an observer, middleware or an event, is to be *received* in its turn, and so is each
/// activity that the store emits. What is left at the end fails the test, too, at ``finish(isolation:fileID:filePath:line:column:)``, or
/// at the latest when the test store is released, and then at the line where it was made.
///
/// Failures go to the framework that runs the test, Swift Testing or XCTest, at the line of the call. After
/// a failure the test store goes on from what is really there.
///
/// Methods may be called on any thread, one after the other; while one waits, its thread is free. A node's
/// store can be tested as one without a node.
public final class TestStore<State: Conflux.State, Value: Equatable & Sendable>: Sendable {
    /// What of the store the test has to say.
    public enum Exhaustivity: Sendable, Hashable {
        /// Everything.
        case on
        /// What it likes: actions and activities may be passed over, and the function of a step sets only
        /// what it is about. Those that were passed over are gone once the test sends or receives what came
        /// behind them.
        case off
    }

    struct Content: Sendable {
        /// What the test has said so far, corrected by what was found.
        var value: Value
        var exhaustivity = Exhaustivity.on
        var timeout = Duration.seconds(10)
        var isFinished = false
    }

    /// The store under test.
    public let store: Store<State>
    let journal = Journal<State, Value>()
    let content: Mutex<Content>
    let reporter = FailureReporter()
    /// Reads the value; called in the lane.
    let reading: @Sendable (State) -> Value
    private let registration: any Disposable & Sendable
    private let place: SourcePlace

    /// Tests a store, of which a function reads what the test looks at.
    ///
    /// - Parameters:
    ///   - store: The store. What it does from now on is to be said by the test.
    ///   - fileID: The file of the test.
    ///   - filePath: The file of the test.
    ///   - line: The line of the test.
    ///   - column: The column of the test.
    ///   - reading: Makes a value of the state. Called where the store commits, between its commits; the
    ///     first time before this returns, for which it waits.
    public init(
        _ store: Store<State>, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
        line: UInt = #line, column: UInt = #column, reading: @escaping @Sendable (State) -> Value
    ) {
        self.store = store
        self.reading = reading
        place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        // Sendable: it is touched in the store's lane alone, by one thread at a time.
        nonisolated(unsafe) let state = store.computed.state
        let journal = journal
        registration = store.core.scope.use(
            JournalTap(journal: journal) { $0.result as? Value ?? reading(state) }, for: store)
        // What was committed before this look belongs to the first value.
        let first = Mutex<Value?>(nil)
        let isRead = DispatchSemaphore(value: 0)
        store.core.inspect { _, _ in
            journal.clear()
            first.withLock { $0 = reading(state) }
            isRead.signal()
        }
        guard isRead.wait(timeout: .now() + 60) == .success, let value = first.withLock({ $0 })
        else {
            preconditionFailure(
                """
                \(place.filePath):\(place.line): the store of \(State.self) did nothing for a minute. \
                Make the TestStore where the store is not in the middle of a commit, and not on its own queue.
                """)
        }
        content = Mutex(Content(value: value))
    }

    deinit {
        registration.dispose()
        if content.withLock({ $0.isFinished }) { return }
        reportRest(at: place)
    }

    /// The value as the test has said it so far.
    public var value: Value { content.withLock { $0.value } }

    /// What the test has to say: everything, unless set.
    public var exhaustivity: Exhaustivity {
        get { content.withLock { $0.exhaustivity } }
        set { content.withLock { $0.exhaustivity = newValue } }
    }

    /// How long a step waits for what it expects: 10 seconds, unless set.
    public var timeout: Duration {
        get { content.withLock { $0.timeout } }
        set { content.withLock { $0.timeout = newValue } }
    }
}
