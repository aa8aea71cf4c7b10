import Conflux
import ConfluxVocabulary
import Foundation

/// Checks that a state's actions lead to the same state in every process.
///
/// ```swift
/// @Test func `stock is deterministic`() async {
///     let checker = DeterminismChecker(Stock.self)
///     await checker.check { random in
///         .add(["fig", "pear"].randomElement(using: &random)!, .random(in: 1...9, using: &random))
///     }
/// }
/// ```
///
/// Several processes commit the same actions, in the same order and with the same contexts. The states are compared
/// before the first action, after each one, and after the last; a large state is compared only after every few
/// actions. Like replicas, they are compared by their canonical JSON. Each process has different hash seeds and
/// addresses, and one of three time zones. One process commits more than a second later. One more process replaces
/// its store after each comparison with a new one, which it loads from the snapshot, like a replica that joins late.
/// If two states differ, or an action is refused in some processes only, the test fails, and the failure names the
/// action and the place.
///
/// The processes run this test program again, with the present test alone. There, the same call commits the actions
/// and ends the process. What the test does *before* that call happens in these processes, too. This works under
/// `swift test`: with Swift Testing, and with XCTest on Linux, in a method of the test case whose name begins with
/// `test`. Other programs that run tests may not know how to run one test alone; then the check fails, and says so.
/// An action that ends its process, such as by a trap, does not end the test.
///
/// It does not detect a clock that is read in minutes, nor anything that is the same in all processes of this
/// machine.
public struct DeterminismChecker<State: ReplicatedState>: Sendable {
    /// How many processes commit all actions in one store, 2 to 16; 4 by default. The more there are, the less likely
    /// it is that a `Set` of two elements has the same order in all of them.
    public var processes = 4 {
        didSet {
            precondition(
                (2...16).contains(processes), "expected 2 to 16 processes, found \(processes)")
        }
    }
    /// How long each process may take; then it is killed. 2 minutes by default.
    public var timeout = Duration.seconds(120)

    /// Makes a checker of a state.
    public init(_ state: State.Type) {}

    /// Makes a checker of a model.
    public init<Model: Conflux.Model>(_ model: Model.Type) where State == ModelState<Model> {}

    /// Checks with these actions.
    ///
    /// - Parameters:
    ///   - actions: The actions, at least one.
    ///   - snapshot: The state before the first action; by default the state as it is made.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - function: The test.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    public func check(
        _ actions: [State.Action], from snapshot: State.Snapshot? = nil,
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, function: StaticString = #function,
        line: UInt = #line, column: UInt = #column
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await compare(in: function, at: place) { () throws(CheckFailure) in
            try work(actions, from: snapshot)
        }
    }

    /// Checks with actions that a function generates.
    ///
    /// - Parameters:
    ///   - count: How many actions.
    ///   - seed: Decides which actions are generated: a seed always gives the same ones. By default the seed is
    ///     random; a failure names it.
    ///   - snapshot: The state before the first action; by default the state as it is made.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - function: The test.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - generate: Makes an action. It must use no random numbers but the generator's.
    public func check(
        count: Int = 200, seed: UInt64? = nil, from snapshot: State.Snapshot? = nil,
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, function: StaticString = #function,
        line: UInt = #line, column: UInt = #column,
        _ generate: (inout SplitMix64) throws -> State.Action
    ) async rethrows {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        let seed = seed ?? .random(in: 0...UInt64.max)
        var random = SplitMix64(seed: seed)
        let actions = try (0..<max(0, count)).map { _ in try generate(&random) }
        await compare(
            in: function, at: place,
            repeated: "To repeat it: `check(count: \(count), seed: \(seed))`."
        ) { () throws(CheckFailure) in
            try work(actions, from: snapshot)
        }
    }

    /// Checks with recorded actions: those of a log, as `conflux log` prints it.
    ///
    /// The actions keep their sequence numbers, times and origins. An action that the log has as
    /// `{"compact":"<base64>"}`, such as one of your own states in the compact coding, is decoded.
    ///
    /// - Parameters:
    ///   - log: The output of `conflux log --json`, or lines of JSON with the member `action`, and with `sequence`,
    ///     `timestamp` (nanoseconds since the start of 1970) and `origin` (as in `6:1`) if these matter. Entries of
    ///     other kinds and for other targets are skipped.
    ///   - store: The store whose actions to take, as in `stock/north`: those for it, and those for all stores of the
    ///     state. By default the store that a node opens without a name, as in `stock/shared`.
    ///   - snapshot: The state before the first action; by default the state as it is made.
    ///   - isolation: The actor of the test; by default the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - function: The test.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    public func check(
        log: String, of store: String? = nil, from snapshot: State.Snapshot? = nil,
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, function: StaticString = #function,
        line: UInt = #line, column: UInt = #column
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        await compare(in: function, at: place) { () throws(CheckFailure) in
            try Work<State>(log: log, store: store ?? "\(State.name)/shared", from: snapshot)
        }
    }

    private func work(
        _ actions: [State.Action], from snapshot: State.Snapshot?
    ) throws(CheckFailure) -> Work<State> {
        var work = Work<State>(from: snapshot)
        for action in actions { try work.add(action) }
        return work
    }

    // MARK: Comparing

    private func compare(
        in function: StaticString, at place: SourcePlace, repeated: String? = nil,
        isolation: isolated (any Actor)? = #isolation,
        _ make: () throws(CheckFailure) -> Work<State>
    ) async {
        let key = "\(place.fileID):\(place.line):\(place.column) \(State.name)"
        if let order = RepeatOrder.current {
            // This is one of the other processes. The test may call other checks before the one
            // that this process is for.
            if order.key == key { order.carryOut(as: State.self) }
            return
        }
        let reporter = FailureReporter()
        do {
            let work = try make()
            if let failure = try await failure(of: work, in: function, at: place, key) {
                reporter.report(Self.join(failure, repeated), at: place)
            }
        } catch {
            reporter.report(
                Self.join("\(State.name) could not be checked: \(error.message)", repeated),
                at: place)
        }
    }

    private static func join(_ message: String, _ repeated: String?) -> String {
        repeated.map { "\(message)\n\n\($0)" } ?? message
    }

    /// Lets the processes commit the actions, and compares the histories.
    ///
    /// - Returns: A message about the first difference; nil if there is none.
    private func failure(
        of work: Work<State>, in function: StaticString, at place: SourcePlace, _ key: String,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(CheckFailure) -> String? {
        if work.steps.isEmpty {
            throw CheckFailure(message: "there is no action to check it by. Give it at least one.")
        }
        let folder = try RepeatFolder(work: work, key: key)
        defer { folder.remove() }
        let tests = try await OnlyTest.current(at: place, in: function, folder.files)
        let plain = Array(repeating: RepeatOrder.Kind.plain, count: processes - 1)
        let histories = try await folder.run(
            tests, plain + [.late, .restored], timeout: timeout)
        let first = histories[0]
        for (index, other) in histories.enumerated().dropFirst() {
            guard let difference = first.firstDifference(from: other) else { continue }
            return index < processes
                ? message(difference, work, other: "in process \(index + 1)", Self.advice)
                : message(difference, work, other: "when restored", Self.adviceOnSnapshots)
        }
        if !first.hasCommits {
            throw CheckFailure(
                message: """
                    each of the \(work.steps.count) actions was refused, so nothing was compared. Give it \
                    actions that the state lets pass, or a state to begin from: `from:`.
                    """)
        }
        return nil
    }

    private static var advice: String {
        """
        Replicas would differ like this. Typical causes: an order that comes from a `Set` or a \
        `Dictionary`, the clock, the system's random numbers, the time zone or the locale, an \
        address. Use the context's `timestamp` and `random`, and sort what has no order.
        """
    }

    private static var adviceOnSnapshots: String {
        """
        Before each action the store was loaded from its snapshot, as in a replica that joins late. Is all of \
        the state in the snapshot, and does it come back as it was?
        """
    }

    private func message(
        _ difference: HistoryDifference, _ work: Work<State>, other: String, _ advice: String
    ) -> String {
        let (name, steps, count) = (State.name, difference.steps, work.steps.count)
        var lines: [String] = []
        if steps.upperBound == 0 {
            lines.append("\(name) differs\(difference.inPlace) before the first action.")
        } else if steps.count == 1 {
            lines.append(
                "\(name) differs\(difference.inPlace) after action \(steps.upperBound) of \(count)."
            )
        } else {
            lines.append(
                """
                \(name) differs\(difference.inPlace) after one of the actions \(steps.lowerBound) to \
                \(steps.upperBound) of \(count).
                """)
        }
        lines.append("")
        if steps.count == 1, let action = work.action(steps.upperBound - 1) {
            lines.append("    action: \(ValueText.line(of: action))")
        }
        lines.append("    in process 1: \(difference.first)")
        lines.append("    \(other): \(difference.other)")
        lines.append("")
        lines.append(advice)
        return lines.joined(separator: "\n")
    }
}

/// Why a check could not be made.
struct CheckFailure: Error {
    let message: String
}
