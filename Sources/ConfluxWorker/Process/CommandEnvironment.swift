import ConfluxArguments
import ConfluxNode
import ConfluxVocabulary
import Foundation

/// The environment of a command: its arguments, its output and diagnostics, and its interruption.
package struct CommandEnvironment: Sendable {
    /// The command and its values.
    package let arguments: Invocation
    /// Whether results are JSON.
    package let isJSON: Bool
    /// Whether the process runs until it is asked to end, which is a success then.
    package let isService: Bool
    /// Whether a signal is the normal end, before the command has a connection, too: of a service, and of a command that
    /// goes on until it is stopped.
    private let runsUntilStopped: Bool
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
    ///   - isService: Whether the process runs until it is asked to end, even if nobody reads its
    ///     output.
    ///   - runsUntilStopped: Whether a command that is no service goes on until a signal stops it.
    ///   - interruption: Ends the command.
    ///   - descriptor: Gets the results.
    package init(
        _ arguments: Invocation, isJSON: Bool, isService: Bool, runsUntilStopped: Bool = false,
        interruption: Interruption, output descriptor: Int32 = STDOUT_FILENO
    ) {
        self.arguments = arguments
        self.isJSON = isJSON
        self.isService = isService
        self.runsUntilStopped = isService || runsUntilStopped
        self.interruption = interruption
        // Commands that end by themselves have no events.
        eventLevelMin = isService ? arguments[EventLevel.option] : .info
        output = StandardOutput(descriptor: descriptor) {
            if !isService { interruption.fire(.outputClosed) }
        }
        diagnostics = Diagnostics(program: arguments.path[0], isJSON: isJSON)
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
    package func announce(_ event: String, _ fields: JSONObject = [:], text: String) {
        let level = EventLevel(of: event)
        guard level >= eventLevelMin else { return }
        let time = Timestamp.current.iso8601
        var line = text
        if isJSON {
            var fields = fields
            fields["event"] = .string(event)
            fields["level"] = .string(level.rawValue)
            fields["time"] = .string(time)
            // One line each, also on a terminal: the output of a service is a journal.
            line = JSONValue.object(fields).description
        }
        if output.isJournal {
            output.print(JournalStream.marked(line, level))
        } else if isJSON {
            output.print(line)
        } else {
            let look = output.appearance
            let word = level.rawValue.padding(toLength: 7, withPad: " ", startingAt: 0)
            line = "\(time) \(word) \(text)"
            switch level {
            case .info: output.print(line)
            case .warning: output.print(look.paint(line, .yellow))
            case .error: output.print(look.paint(line, .red))
            }
        }
    }

    /// Tells whoever follows results that earlier ones belong to a history that the log has lost: a line among the
    /// results if they are JSON, and a note for people.
    ///
    /// - Parameters:
    ///   - fields: The event's fields.
    ///   - text: The note.
    package func tellHistoryLost(_ fields: JSONObject, _ text: String) {
        if isJSON {
            var fields = fields
            fields["event"] = "historyLost"
            output.add(json: Array(JSONValue.object(fields).description.utf8))
        }
        output.flush()
        diagnostics.note(text)
    }

    /// Runs a command and returns the exit code.
    ///
    /// An interruption explains why a command has failed, so the failure is not reported. There are two
    /// exceptions: the user must learn that an outcome is unknown, and what a command says of its interruption.
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
            if runsUntilStopped { return .success }
            if error.exitCode == .unknownOutcome { return end(with: error) }
            if error.code == "\(ExitCode.interrupted)" { diagnostics.report(error) }
            return reason
        }
        output.flush()
        return exitCode == .success || exitCode == .outputClosed ? end(with: nil) : exitCode
    }

    /// The exit code of a command that failed, or whose results may not have been written.
    private func end(with failure: CommandFailure?) -> ExitCode {
        guard let failure = isService ? failure : output.failure ?? failure else { return .success }
        // The reader that closed the output needs no message.
        if failure.exitCode != .outputClosed { diagnostics.report(failure) }
        return failure.exitCode
    }
}

extension JSONValue {
    /// A whole number.
    package static func number(_ value: UInt64) -> JSONValue { .integer(JSONInteger(value)) }
    /// A sequence number.
    package static func number(_ value: SequenceNumber) -> JSONValue { .number(value.rawValue) }
    /// An epoch.
    package static func number(_ value: Epoch) -> JSONValue { .number(value.rawValue) }
    /// An incarnation.
    package static func number(_ value: Incarnation) -> JSONValue { .number(value.rawValue) }
    /// The descriptions of values.
    package static func texts(_ values: [some CustomStringConvertible]) -> JSONValue {
        .array(values.map { .string($0.description) })
    }
}
