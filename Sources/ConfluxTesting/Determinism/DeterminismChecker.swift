import Conflux
import ConfluxVocabulary
import Foundation

/// Finds out whether a state's actions lead to the same state in every process.
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
/// It commits the same actions, in the same order and with the same contexts, in this process and in several
/// others, and compares the whole state after each: by its canonical JSON, as replicas are compared. Each
/// process has other hash seeds, addresses, time, time zone and locale. At last it commits them once more,
/// each in a store that was just loaded from the snapshot of the one before, as in a replica that joins
/// late. Where two states differ it fails the test, and names the action and the place.
///
/// The other processes are this test program again, told to run the present test alone; there, the same call
/// repeats the actions and ends the process, and what the test does *before* that call is done there, too.
/// Hence this works with Swift Testing wherever it runs, and with XCTest on Linux, in a method of the test
/// case whose name begins with `test`.
public struct DeterminismChecker<State: ReplicatedState>: Sendable {
    /// How many other processes repeat the actions, 1 to 16: 3, unless set. That two states that differ
    /// only by the order of two elements in a `Set` look alike in all of them is the less likely the more
    /// there are.
    public var otherProcesses = 3 {
        didSet {
            precondition(
                (1...16).contains(otherProcesses),
                "expected 1 to 16 other processes, found \(otherProcesses)")
        }
    }
    /// How long each of them may take: 2 minutes, unless set. It is ended then.
    public var timeout = Duration.seconds(120)

    /// Makes a checker of a state.
    public init(_ state: State.Type) {}

    /// Makes a checker of a model.
    public init<Model: Conflux.Model>(_ model: Model.Type) where State == ModelState<Model> {}

    /// Checks by actions that are given.
    ///
    /// - Parameters:
    ///   - actions: The actions, at least one.
    ///   - snapshot: The state before the first; as it is made, if left out.
    ///   - isolation: The actor of the test: the caller's.
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
        await compare(
            Work(snapshot: snapshot, steps: Work.steps(of: actions)), in: function, at: place)
    }

    /// Checks by actions that a function generates.
    ///
    /// - Parameters:
    ///   - count: How many actions.
    ///   - seed: Chooses the actions: the same ones each time. Another one each time, if left out; a
    ///     failure says which.
    ///   - snapshot: The state before the first; as it is made, if left out.
    ///   - isolation: The actor of the test: the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - function: The test.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    ///   - generate: Makes an action, by random numbers of the generator alone.
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
            Work(snapshot: snapshot, steps: Work.steps(of: actions)), in: function, at: place,
            repeated: "To repeat it: `check(count: \(count), seed: \(seed))`.")
    }

    /// Checks by actions that were recorded: those in a log, as `conflux log` prints it.
    ///
    /// Their sequence numbers and times are those of the log.
    ///
    /// - Parameters:
    ///   - log: What `conflux log --json` has printed, or lines of JSON with the member `action`, and
    ///     `sequence` and `timestamp` (nanoseconds since the start of 1970) if these matter. Entries of other
    ///     kinds and for other targets are passed over.
    ///   - target: Whose actions: the state's name, or that of a store of it, as in `stock/north`. The
    ///     state's, if left out.
    ///   - snapshot: The state before the first; as it is made, if left out.
    ///   - isolation: The actor of the test: the caller's.
    ///   - fileID: The file of the call.
    ///   - filePath: The file of the call.
    ///   - function: The test.
    ///   - line: The line of the call.
    ///   - column: The column of the call.
    public func check(
        log: String, of target: String? = nil, from snapshot: State.Snapshot? = nil,
        isolation: isolated (any Actor)? = #isolation, fileID: StaticString = #fileID,
        filePath: StaticString = #filePath, function: StaticString = #function,
        line: UInt = #line, column: UInt = #column
    ) async {
        let place = SourcePlace(fileID: fileID, filePath: filePath, line: line, column: column)
        do {
            let steps = try Work<State>.steps(log: log, target: target ?? State.name)
            await compare(Work(snapshot: snapshot, steps: steps), in: function, at: place)
        } catch {
            FailureReporter().report("The log can't be read: \(error.message)", at: place)
        }
    }

    // MARK: Comparing

    private func compare(
        _ work: Work<State>, in function: StaticString, at place: SourcePlace,
        repeated: String? = nil, isolation: isolated (any Actor)? = #isolation
    ) async {
        let reporter = FailureReporter()
        do {
            let key = "\(place.fileID):\(place.line):\(place.column) \(State.name)"
            if let order = RepeatOrder.current {
                // This is another process. There may be other checks before the one that is meant.
                if order.key == key { order.carryOut(as: State.self) }
                return
            }
            if work.steps.isEmpty {
                return reporter.report(
                    "There is no action of \(State.name) to check it by.", at: place)
            }
            let tests = try OnlyTest.current(at: place, in: function)
            let here = try work.history(isRestored: false)
            let folder = try RepeatFolder(work: work, key: key)
            defer { folder.remove() }
            let others = try await folder.run(tests, count: otherProcesses, timeout: timeout)
            for (index, other) in others.enumerated() {
                guard let difference = here.firstDifference(from: other) else { continue }
                return reporter.report(
                    message(
                        difference, work, there: "in process \(index + 1)", advice: Self.advice,
                        repeated), at: place)
            }
            let restored = try work.history(isRestored: true)
            if let difference = here.firstDifference(from: restored) {
                reporter.report(
                    message(
                        difference, work, there: "when restored", advice: Self.adviceOnSnapshots,
                        repeated), at: place)
            }
        } catch {
            reporter.report("\(State.name) could not be checked: \(error.message)", at: place)
        }
    }

    private static var advice: String {
        """
        Replicas would come to differ like this. What does it: an order that comes from a `Set` or a \
        `Dictionary`, the clock, random numbers of the system's, the locale or the time zone, an address. Use \
        the context's `timestamp` and `random`, and sort what has no order.
        """
    }

    private static var adviceOnSnapshots: String {
        """
        Before each action the store was loaded from its snapshot, as in a replica that joins late. Is all of \
        the state in the snapshot, and does it come back as it was?
        """
    }

    private func message(
        _ difference: HistoryDifference, _ work: Work<State>, there: String, advice: String,
        _ repeated: String?
    ) -> String {
        let name = State.name
        var lines: [String] = []
        if difference.step == 0 {
            lines.append("\(name) differs\(difference.inPlace) before the first action.")
        } else {
            let count = work.steps.count
            lines.append(
                "\(name) differs\(difference.inPlace) after action \(difference.step) of \(count).")
        }
        lines.append("")
        if difference.step > 0 {
            let action = ValueText.line(of: work.steps[difference.step - 1].action)
            lines.append("    action: \(action)")
        }
        lines.append("    here: \(difference.here)")
        lines.append("    \(there): \(difference.there)")
        lines.append("")
        lines.append(advice)
        if let repeated { lines.append(repeated) }
        return lines.joined(separator: "\n")
    }
}

/// Why a check could not be made.
struct CheckFailure: Error {
    let message: String
}
