import ConfluxArguments
import ConfluxNode
import ConfluxSystem
import ConfluxVocabulary
import Foundation
import Synchronization

/// Writes the results of a command to standard output.
///
/// Writes gather in a buffer. It is written out when it is large, and whenever the writer flushes it.
/// Once nobody reads any more, or writing fails, the rest is dropped, and `whenClosed` is called once.
/// Then a service continues, and a command ends.
package final class StandardOutput: Sendable {
    private struct Content {
        var buffer: [UInt8] = []
        /// The number of the error after which nothing is written any more.
        var failure: Int32?
    }

    private static let bufferBytes = 64 << 10
    private let state = Mutex(Content())
    private let descriptor: Int32
    private let whenClosed: @Sendable () -> Void
    /// The appearance of the lines.
    package let appearance: Appearance
    /// Whether the journal of systemd reads the lines.
    let isJournal: Bool

    /// Makes an output.
    ///
    /// - Parameters:
    ///   - descriptor: Where to write.
    ///   - whenClosed: Called once when nothing is written any more, on the thread that writes.
    package init(
        descriptor: Int32 = STDOUT_FILENO, whenClosed: @escaping @Sendable () -> Void = {}
    ) {
        self.descriptor = descriptor
        appearance = Appearance(of: descriptor)
        isJournal = JournalStream.reads(descriptor)
        self.whenClosed = whenClosed
    }

    /// Prints a text that is the whole output.
    ///
    /// - Returns: The exit code.
    package static func show(_ text: String) -> ExitCode {
        let output = StandardOutput()
        output.print(text)
        guard let failure = output.failure else { return .success }
        if failure.exitCode != .outputClosed { Diagnostics.write(failure.message, .error) }
        return failure.exitCode
    }

    /// Adds a line to the buffer.
    package func add(_ line: String) {
        add(Array(line.utf8))
    }

    /// Adds a line to the buffer.
    package func add(_ line: [UInt8]) {
        let closed = state.withLock { state -> Bool in
            guard state.failure == nil else { return false }
            state.buffer += line
            state.buffer.append(UInt8(ascii: "\n"))
            return state.buffer.count >= Self.bufferBytes ? write(&state) : false
        }
        if closed { whenClosed() }
    }

    /// Writes out the buffer.
    package func flush() {
        let closed = state.withLock { state in write(&state) }
        if closed { whenClosed() }
    }

    /// Adds a line and writes it out.
    package func print(_ line: String) {
        add(line)
        flush()
    }

    /// Adds a value to the buffer: on one line, or laid out for people on a terminal.
    package func add(json: [UInt8]) {
        guard appearance.isTerminal else { return add(json) }
        add(JSONLayout.bytes(json, appearance, columns: appearance.columns))
    }

    /// Adds a value, as ``add(json:)`` does, and writes it out.
    package func print(_ value: JSONValue) {
        add(json: Array(value.description.utf8))
        flush()
    }

    /// The failure of a command whose results could not be written; nil if they were written.
    package var failure: CommandFailure? {
        guard let number = state.withLock({ $0.failure }) else { return nil }
        guard number != EPIPE else {
            return CommandFailure(
                .outputClosed, "Nobody reads the output any more: the rest was left out.")
        }
        guard number != ETIMEDOUT else {
            return CommandFailure(
                .logFailed, code: "outputFailed",
                "Nobody read the output when the command had to end, so its rest is lost. Read it, and "
                    + "run the command again.")
        }
        let reason = SystemFailure(number).reason(
            advice: "Give the command an output that it can write.")
        return CommandFailure(
            .logFailed, code: "outputFailed",
            "Standard output can't be written, so its rest is lost: \(reason) Then run the command again."
        )
    }

    /// - Returns: Whether this call found that nothing can be written any more.
    private func write(_ state: inout Content) -> Bool {
        guard state.failure == nil, !state.buffer.isEmpty else { return false }
        defer { state.buffer.removeAll(keepingCapacity: true) }
        let number = Self.write(state.buffer, to: descriptor)
        guard number != 0 else { return false }
        state.failure = number
        return true
    }

    /// How much a pipe surely takes at once if it takes anything.
    private static let pieceBytes = 4_096
    /// How often a write that waits for its reader looks whether the process has to end.
    private static let lookPause: Int32 = 100

    /// Writes everything, however long the reader takes, unless the process has to end. It never waits within the
    /// system's write, where nothing could end the wait: it writes only what the reader has room for.
    ///
    /// - Returns: 0, or the error's number; `ETIMEDOUT` if the process has to end and nobody reads.
    package static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        var about = stat()
        let isFile = fstat(descriptor, &about) == 0 && about.st_mode & S_IFMT == S_IFREG
        return bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count {
                guard isFile || awaitRoom(descriptor) else { return ETIMEDOUT }
                let left = buffer.count - offset
                let written = Foundation.write(
                    descriptor, buffer.baseAddress?.advanced(by: offset),
                    isFile ? left : min(left, pieceBytes))
                if written >= 0 {
                    offset += written
                } else if errno != EAGAIN, errno != EINTR {
                    // EAGAIN: another process made the terminal non-blocking, or has filled the room.
                    return errno
                }
            }
            return 0
        }
    }

    /// - Returns: Whether there is room; false if the process has to end and nobody reads.
    private static func awaitRoom(_ descriptor: Int32) -> Bool {
        var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        while true {
            let count = poll(&room, 1, lookPause)
            // If poll itself fails, the write reports why.
            if count > 0 || count < 0 && errno != EINTR { return true }
            if let time = Interruption.timeSinceSignal, time >= Interruption.outputMax {
                return false
            }
        }
    }
}

/// Writes messages about the work to standard error.
package struct Diagnostics: Sendable {
    /// The program's name, which begins each message.
    let program: String
    /// Whether failures are JSON.
    let isJSON: Bool
    /// Whether each message has its time and its level, like the events of a service.
    let isService: Bool

    /// Makes the diagnostics of a program.
    ///
    /// - Parameters:
    ///   - program: The program's name.
    ///   - isJSON: Whether failures are JSON.
    ///   - isService: Whether each message has its time and its level. The journal of systemd knows the time itself.
    package init(program: String, isJSON: Bool, isService: Bool = false) {
        self.program = program
        self.isJSON = isJSON
        self.isService = isService
    }

    /// Reports why the command fails.
    package func report(_ failure: CommandFailure) {
        guard isJSON else {
            writeLine(
                "\(Appearance.ofErrors.paint("\(program):", .red)) \(failure.message)", .error)
            return
        }
        guard isService else { return Self.write(["error": failure]) }
        // One line, also on a terminal, like the events.
        let fields: JSONFields = [
            "error": failure, "level": EventLevel.error.rawValue,
            "time": Timestamp.current.iso8601,
        ]
        Self.write(JSONObject(fields).json.description, .error)
    }

    /// Writes a line for people.
    private func writeLine(_ line: String, _ level: EventLevel) {
        let isTimed = isService && !JournalStream.reads(STDERR_FILENO)
        Self.write(isTimed ? level.line(line, at: Timestamp.current.iso8601) : line, level)
    }

    /// Reports why a command line can't be understood.
    ///
    /// - Parameters:
    ///   - error: What is wrong with the command line.
    ///   - isJSON: Whether failures are JSON.
    package static func report(_ error: UsageError, isJSON: Bool = false) {
        guard isJSON else {
            let command = "\(error.command):"
            let text = error.description.dropFirst(command.count)
            write(Appearance.ofErrors.paint(command, .red) + text, .error)
            return
        }
        write(["error": CommandFailure(.usage, code: "usage", error.description)])
    }

    /// Notes the variables that look as if they gave an option, and have no effect.
    ///
    /// - Parameters:
    ///   - variables: The environment.
    ///   - invocation: The command.
    package static func noteUnread(_ variables: [String: String], by invocation: Invocation) {
        let diagnostics = Diagnostics(
            program: invocation.path[0], isJSON: false,
            isService: invocation.describes(EventLevel.option))
        for text in invocation.unreadVariables(variables) { diagnostics.note(text) }
    }

    /// Writes a value: on one line, or laid out for people on a terminal.
    private static func write(_ fields: JSONFields) {
        let text = JSONObject(fields).json.description
        let look = Appearance.ofErrors
        guard look.isTerminal else { return write(text, .error) }
        let lines = JSONLayout.bytes(text.utf8, look, columns: look.columns)
        _ = StandardOutput.write(lines + [UInt8(ascii: "\n")], to: STDERR_FILENO)
    }

    /// Writes a message for people only; `--json` does not change it.
    package func note(_ message: String) {
        writeLine("\(program): \(message)", .warning)
    }

    /// Writes a line to standard error.
    ///
    /// - Parameters:
    ///   - line: The line.
    ///   - level: Its level, if the journal of systemd reads it.
    package static func write(_ line: String, _ level: EventLevel) {
        let isJournal = JournalStream.reads(STDERR_FILENO)
        write(raw: (isJournal ? JournalStream.marked(line, level) : line) + "\n")
    }

    /// Writes a text to standard error as it is, without adding a line break.
    package static func write(raw text: String) {
        // If nobody reads the diagnostics, nobody can be told.
        _ = StandardOutput.write(Array(text.utf8), to: STDERR_FILENO)
    }
}
