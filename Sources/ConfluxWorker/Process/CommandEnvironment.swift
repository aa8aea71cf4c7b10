import ConfluxArguments
import ConfluxNode
import ConfluxVocabulary
import Foundation

/// The environment of a command: its arguments, its output and diagnostics, and its interruption.
package struct CommandEnvironment: Sendable {
    /// When a command has done its work.
    package enum Lifetime: Sendable {
        /// When it ends by itself.
        case limited
        /// When it is asked to end, or nobody reads its output any more.
        case following
        /// When it is asked to end, even if nobody reads its output.
        case service
    }

    /// The command and its values.
    package let arguments: Invocation
    /// Whether results are JSON.
    package let isJSON: Bool
    /// When the command has done its work.
    package let lifetime: Lifetime
    /// Gets the results.
    package let output: StandardOutput
    /// Gets everything else.
    package let diagnostics: Diagnostics
    /// Ends the command.
    package let interruption: Interruption
    /// The lowest level of events that are printed.
    private let eventLevelMin: EventLevel

    /// Makes the environment of a command.
    ///
    /// - Parameters:
    ///   - arguments: The command and its values.
    ///   - isJSON: Whether results are JSON.
    ///   - lifetime: When the command has done its work.
    ///   - interruption: Ends the command.
    ///   - descriptor: Gets the results.
    package init(
        _ arguments: Invocation, isJSON: Bool, lifetime: Lifetime, interruption: Interruption,
        output descriptor: Int32 = STDOUT_FILENO
    ) {
        self.arguments = arguments
        self.isJSON = isJSON
        self.lifetime = lifetime
        self.interruption = interruption
        let isService = lifetime == .service
        // Other commands have no events.
        eventLevelMin = isService ? arguments[EventLevel.option] : .info
        output = StandardOutput(descriptor: descriptor) {
            if !isService { interruption.fire(.outputClosed) }
        }
        diagnostics = Diagnostics(
            program: arguments.path[0], isJSON: isJSON, isService: isService)
    }

    /// Prints an event with its time and its level: JSON, or a line for people. An event below the chosen level is
    /// not printed.
    ///
    /// The journal of systemd knows the time itself, and gets the level as it reads it.
    ///
    /// - Parameters:
    ///   - event: The event's name.
    ///   - fields: The other fields.
    ///   - text: The line for people.
    package func announce(_ event: String, _ fields: JSONFields = [:], text: String) {
        let level = EventLevel(of: event)
        guard level >= eventLevelMin else { return }
        let time = Timestamp.current.iso8601
        var line = text
        if isJSON {
            // One line each, also on a terminal: the output of a service is a journal.
            let event: JSONFields = ["event": event, "level": level.rawValue, "time": time]
            line = JSONObject(fields.merging(event) { $1 }).json.description
        }
        if output.isJournal {
            output.print(JournalStream.marked(line, level))
        } else if isJSON {
            output.print(line)
        } else {
            let look = output.appearance
            line = level.line(text, at: time)
            switch level {
            case .info: output.print(line)
            case .warning: output.print(look.paint(line, .yellow))
            case .error: output.print(look.paint(line, .red))
            }
        }
    }

    /// Prints the result of a command: its fields as JSON, or a text for people.
    ///
    /// - Parameters:
    ///   - fields: The fields.
    ///   - text: The text.
    package func show(_ fields: JSONFields, _ text: @autoclosure () -> String) {
        if isJSON { output.print(JSONObject(fields).json) } else { output.add(text()) }
    }

    /// Tells whoever follows results that earlier ones belong to a history that the log has lost: a line among the
    /// results if they are JSON, and a note for people.
    ///
    /// - Parameters:
    ///   - fields: The event's fields.
    ///   - text: The note.
    package func tellHistoryLost(_ fields: JSONFields, _ text: String) {
        if isJSON {
            let event: JSONFields = ["event": "historyLost"]
            output.print(JSONObject(fields.merging(event) { $1 }).json)
        }
        output.flush()
        diagnostics.note(text)
    }

    /// Notes that the way to the sequencer has failed, or works again, if the command follows what happens there.
    ///
    /// - Parameters:
    ///   - event: The node's event; nothing is noted if it is about something else.
    ///   - address: The address that the command was given.
    func noteLink(_ event: NodeEvent, to address: String) {
        guard lifetime == .following, let report = NodeReport(event, at: address), report.isOfLink
        else { return }
        output.flush()
        diagnostics.note(report.text)
    }

    /// Runs a command and returns the exit code.
    ///
    /// An interruption explains why a command has failed, so the failure is not reported. There are two
    /// exceptions: the user must learn that an outcome is unknown, and what a command says of its interruption.
    /// For a command that does not end by itself, an interruption is the normal end.
    package func run(
        _ command: (CommandEnvironment) async throws(CommandFailure) -> ExitCode
    ) async -> ExitCode {
        let exitCode: ExitCode
        do throws(CommandFailure) {
            exitCode = try await command(self)
        } catch {
            output.flush()
            guard let reason = interruption.reason, reason != .outputClosed else {
                return end(with: error)
            }
            if lifetime != .limited { return end(with: nil) }
            if error.exitCode == .unknownOutcome { return end(with: error) }
            if error.code == "\(ExitCode.interrupted)" { diagnostics.report(error) }
            return reason
        }
        output.flush()
        let isDone =
            exitCode == .success || exitCode == .outputClosed
            || lifetime != .limited && exitCode == interruption.reason
        return isDone ? end(with: nil) : exitCode
    }

    /// The exit code of a command that failed, or whose results may not have been written.
    private func end(with failure: CommandFailure?) -> ExitCode {
        guard let failure = lifetime == .service ? failure : output.failure ?? failure else {
            return .success
        }
        // The reader that closed the output needs no message.
        if failure.exitCode != .outputClosed { diagnostics.report(failure) }
        return failure.exitCode
    }
}
