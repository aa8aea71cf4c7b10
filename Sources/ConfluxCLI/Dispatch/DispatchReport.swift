import ConfluxNode
import ConfluxWorker
import Foundation
import Synchronization

/// Prints the output of `conflux dispatch`: a line of JSON for each action, or a summary for
/// people.
final class DispatchReport: Sendable {
    private struct Tally {
        var succeeded = 0
        var failed = 0
        /// Lines whose outcome an earlier run printed.
        var resumed = 0
        var first: SequenceNumber?
        var last: SequenceNumber?
        /// The exit code of the first line that failed.
        var exitCode: ExitCode?
        /// The receipts of each term: the first and the last number. *Invariant*: ascending epochs.
        var terms: [(epoch: Epoch, first: SequenceNumber, last: SequenceNumber)] = []
        /// Whether the log has lost entries during this run, so that its receipts may be void.
        var hasLostHistory = false

        mutating func note(_ receipt: Receipt) {
            if terms.last?.epoch == receipt.epoch {
                terms[terms.count - 1].last = receipt.sequence
            } else {
                terms.append((receipt.epoch, receipt.sequence, receipt.sequence))
            }
        }
    }

    /// What to wait for.
    let wait: DispatchCommand.Wait
    private let isStream: Bool
    /// Whether timers are set, instead of dispatching the actions.
    private let isTimed: Bool
    private let environment: CommandEnvironment
    private let targetText: String
    private let progress: ProgressLine
    private let started = ContinuousClock.now
    private let tally = Mutex(Tally())

    init(
        _ environment: CommandEnvironment, target: Target, wait: DispatchCommand.Wait,
        isStream: Bool, isTimed: Bool = false
    ) {
        self.isTimed = isTimed
        self.environment = environment
        self.wait = wait
        self.isStream = isStream
        targetText = target.description
        progress = ProgressLine(isOn: isStream)
    }

    /// An action reached what was waited for.
    func succeeded(_ receipt: Receipt) {
        tally.withLock { tally in
            tally.succeeded += 1
            tally.first = tally.first ?? receipt.sequence
            tally.last = receipt.sequence
            tally.note(receipt)
        }
        if environment.isJSON {
            environment.output.add(json: Array(Self.line(receipt, targetText).utf8))
        }
    }

    /// The JSON of a receipt, keys sorted. A target's name needs no escapes.
    static func line(_ receipt: Receipt, _ target: String) -> String {
        """
        {"epoch":\(receipt.epoch.rawValue),"sequence":\(receipt.sequence.rawValue),\
        "target":"\(target)","timestamp":\(receipt.timestamp.rawValue)}
        """
    }

    /// An earlier run printed a line's outcome.
    func resumed(line: Int) {
        tally.withLock { $0.resumed += 1 }
        if environment.isJSON {
            environment.output.add(json: Array(#"{"line":\#(line),"resumed":true}"#.utf8))
        }
    }

    /// An action was handed to the node.
    func sent() {
        tally.withLock { $0.succeeded += 1 }
    }

    /// An action failed.
    func failed(line: Int, _ failure: CommandFailure) {
        tally.withLock { tally in
            tally.failed += 1
            tally.exitCode = tally.exitCode ?? failure.exitCode
        }
        guard !environment.isJSON else {
            environment.output.add(json: Array(Self.line(line, failure).description.utf8))
            return
        }
        progress.clear()
        if isStream {
            environment.diagnostics.note("line \(line): \(failure.message)")
        } else {
            environment.diagnostics.report(failure)
        }
    }

    /// The JSON of a failure.
    static func line(_ line: Int, _ failure: CommandFailure) -> JSONValue {
        let receipt = failure.receipt.map { receipt in
            JSONObject([
                "epoch": receipt.epoch, "sequence": receipt.sequence,
                "timestamp": Int(receipt.timestamp.rawValue),
            ])
        }
        return JSONObject(["error": failure, "line": line, "receipt": receipt]).json
    }

    /// The log lost entries, as when it was restored from a backup.
    ///
    /// - Parameters:
    ///   - from: The first number that it lost.
    ///   - through: The last number that this process had heard of.
    ///   - epoch: The term that serves the log now: its receipts are about what the log has. nil if it is not known,
    ///     since the node ended.
    ///   - isResumable: Whether another run can continue this one.
    func lost(
        from: SequenceNumber, through: SequenceNumber, servedIn epoch: Epoch?, isResumable: Bool
    ) {
        let numbers = tally.withLock { tally -> (SequenceNumber, SequenceNumber)? in
            let lost = tally.terms.filter { term in
                term.last >= from && term.first <= through
                    && epoch.map { term.epoch < $0 } ?? true
            }
            tally.hasLostHistory = true
            guard let first = lost.first, let last = lost.last else { return nil }
            return (max(first.first, from), min(last.last, through))
        }
        progress.clear()
        let what = numbers.map { "The receipts of this run for entries \($0) to \($1) are void." }
        let advice =
            isResumable
            ? "Run the command again with the same key: it dispatches exactly what is not in the log."
            : "Look at the log before you dispatch those actions again."
        environment.diagnostics.report(
            CommandFailure(
                .unknownOutcome, code: "historyLost", lost: from...max(from, through),
                """
                The log has lost the entries \(from) to \(through), as after a restore from a backup. \
                \(what ?? "This run has no receipts for them.") \(advice)
                """))
    }

    /// The sequencer does not know the session of this resumable run any more, so nobody can tell whether its log was
    /// replaced.
    func forgotten() {
        tally.withLock { $0.hasLostHistory = true }
        progress.clear()
        environment.diagnostics.report(
            CommandFailure(
                .unknownOutcome, code: "sessionForgotten",
                """
                The sequencer no longer remembers the session of this key. Its log may have been restored \
                from an older copy: then receipts that were printed before may be void. Run the command \
                again with the same key: it dispatches exactly what is not in the log. If the log was not \
                restored, the session was forgotten while this process was away. Then look at the log \
                first: with any key, the command would dispatch every line again.
                """))
    }

    /// Flushes the output and shows the progress, after a portion.
    ///
    /// - Parameter share: The share of the file that is done; nil if the input's size is unknown.
    func batchDone(_ share: Double?) {
        environment.output.flush()
        progress.show(
            ProgressLine.text(
                tally.withLock { $0.succeeded + $0.failed + $0.resumed }, .actions, share: share,
                elapsed: ContinuousClock.now - started))
    }

    /// Prints the summary.
    ///
    /// - Parameter isComplete: Whether the whole input was read.
    /// - Returns: The exit code of the process.
    func finish(isComplete: Bool) -> ExitCode {
        progress.clear()
        let (tally, isInterrupted) = (
            tally.withLock { $0 }, environment.interruption.reason != nil
        )
        if !environment.isJSON { tell(tally) }
        environment.output.flush()
        if !isComplete {
            environment.diagnostics.note(
                "stopped before the end of the input, after \(tally.succeeded + tally.failed) actions"
            )
        }
        if isInterrupted, !isComplete || tally.exitCode != nil,
            let reason = environment.interruption.reason
        {
            return reason
        }
        // A void receipt is worse than a line that failed, and was reported as a success.
        return tally.hasLostHistory ? .unknownOutcome : tally.exitCode ?? .success
    }

    private func tell(_ tally: Tally) {
        let verb =
            switch wait {
            case .applied: "applied"
            case .committed: isTimed ? "timer set" : "committed"
            case .none: "sent"
            }
        guard isStream else {
            guard tally.succeeded == 1 else { return }
            let place = tally.first.map { " as entry \($0)" } ?? ""
            environment.output.add(
                "\(environment.output.appearance.paint(verb, .green))\(place): \(targetText)")
            return
        }
        var text =
            "\(verb): \(tally.succeeded) of \(tally.succeeded + tally.failed) \(isTimed ? "timers" : "actions")"
        if let first = tally.first, let last = tally.last {
            text += ", entries \(first) to \(last)"
        }
        if tally.resumed > 0 {
            text += "; \(tally.resumed) lines of an earlier run"
        }
        environment.output.add(text)
    }
}
