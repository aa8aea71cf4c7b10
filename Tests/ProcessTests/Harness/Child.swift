import Foundation
import Spawning
import Synchronization

/// A process that a test started: the lines of its output, its end, and signals to it.
///
/// It inherits no other descriptors of this process. So the end of a pipe means that the process at the
/// other end has ended, even if other processes were started in the meantime.
final class Child: Sendable {
    /// The source of standard input.
    enum Input: Sendable {
        case nothing
        case file(String)
        /// The lines that ``feed(_:)`` gets.
        case pipe
    }

    /// The destination of standard output.
    enum Output: Sendable {
        case lines
        case file(String)
    }

    /// How a process ended.
    enum End: Hashable, Sendable, CustomStringConvertible {
        case exited(Int32)
        case killed(Int32)

        var description: String {
            switch self {
            case .exited(let code): "exit code \(code)"
            case .killed(let signal): "signal \(signal)"
            }
        }
    }

    private struct State {
        var isReaped = false
        var end: End?
        var waiters: [OneTime<End?>] = []
        var inputDescriptor: Int32?
    }

    /// The command line, for messages.
    let title: String
    let processID: pid_t
    let output: Lines
    let errors: Lines
    private let state: Mutex<State>
    private let feeding = DispatchQueue(label: "feeding")

    init(
        _ executable: String, _ arguments: [String], environment: [String: String] = [:],
        input: Input = .nothing, output: Output = .lines
    ) throws {
        title = ([(executable as NSString).lastPathComponent] + arguments).joined(separator: " ")
        self.output = Lines(of: title)
        errors = Lines(of: "the diagnostics of \(title)")

        let errorPipe = try makePipe()
        let standardInput: Source
        let standardOutput: Source
        switch input {
        case .nothing: standardInput = try Source(opening: "/dev/null", O_RDONLY)
        case .file(let path): standardInput = try Source(opening: path, O_RDONLY)
        case .pipe: standardInput = Source(reading: try makePipe())
        }
        switch output {
        case .lines: standardOutput = Source(writing: try makePipe())
        case .file(let path):
            standardOutput = try Source(opening: path, O_WRONLY | O_CREAT | O_TRUNC)
        }
        defer {
            close(standardInput.given)
            close(standardOutput.given)
            close(errorPipe.writeEnd)
        }
        processID = try spawn(
            executable, arguments, environment,
            descriptors: [standardInput.given, standardOutput.given, errorPipe.writeEnd])
        Guardian.shared.watch(processID)
        state = Mutex(State(inputDescriptor: standardInput.kept))

        errors.read(from: errorPipe.readEnd)
        if let descriptor = standardOutput.kept {
            self.output.read(from: descriptor)
        } else {
            self.output.close()
        }
        let thread = Thread { self.awaitEnd() }
        thread.name = "child-\(processID)"
        thread.start()
    }

    private func awaitEnd() {
        // Until the process is reaped, no other process can get its id.
        var information = siginfo_t()
        while waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {
        }
        Guardian.shared.forget(processID)
        let (end, waiters) = state.withLock { state -> (End, [OneTime<End?>]) in
            var status: Int32 = 0
            while waitpid(processID, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7F
            let end = signal == 0 ? End.exited((status >> 8) & 0xFF) : .killed(signal)
            state.isReaped = true
            state.end = end
            defer { state.waiters = [] }
            return (end, state.waiters)
        }
        for waiter in waiters { waiter.give(end) }
        endInput()
    }

    /// Sends a signal. If the process has ended, nothing happens. For SIGSTOP, it returns once all threads
    /// of the process have stopped.
    func signal(_ number: Int32) {
        state.withLock { state in
            guard !state.isReaped, kill(processID, number) == 0, number == SIGSTOP else { return }
            var info = siginfo_t()
            waitid(P_PID, id_t(processID), &info, WSTOPPED | WEXITED | WNOWAIT)
        }
    }

    /// Writes lines to standard input in the background, however long the process takes to read them.
    func feed(_ lines: some Sequence<String> & Sendable) {
        feeding.async {
            for line in lines where !self.write(Array("\(line)\n".utf8)) { return }
        }
    }

    /// Closes standard input once everything is written.
    func endInput() {
        feeding.async { self.closeInput() }
    }

    /// - Returns: Whether the process took the bytes.
    private func write(_ bytes: [UInt8]) -> Bool {
        guard let descriptor = state.withLock({ $0.inputDescriptor }) else { return false }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private func closeInput() {
        if let descriptor = state.withLock({ $0.inputDescriptor.take() }) { close(descriptor) }
    }

    var isRunning: Bool { state.withLock { $0.end == nil } }

    /// Waits until the process ends.
    ///
    /// - Throws: ``Failure`` with the process's output, if it still runs after the time.
    func end(within limit: Duration = .seconds(60)) async throws -> End {
        let waiter = OneTime<End?>()
        let known = state.withLock { state in
            if state.end == nil { state.waiters.append(waiter) }
            return state.end
        }
        if let known { return known }
        waiter.after(limit, give: nil)
        guard let end = await waiter.value() else {
            throw Failure("\(title) still runs after \(limit); it said:\n\(report)")
        }
        return end
    }

    /// Kills the process.
    func destroy() async throws {
        signal(SIGKILL)
        _ = try await end()
    }

    /// The last lines of its output.
    var report: String {
        let end = state.withLock { $0.end }
        return """
            \(title): \(end.map { "\($0)" } ?? "running")
            \((output.soFar.suffix(5) + errors.soFar.suffix(20)).map { "    \($0.prefix(400))" }
                .joined(separator: "\n"))
            """
    }
}

/// A descriptor for a process, and the descriptor of the pipe's other end.
private struct Source {
    let given: Int32
    let kept: Int32?

    init(opening path: String, _ flags: Int32) throws {
        given = open(path, flags | O_CLOEXEC, 0o600)
        kept = nil
        guard given >= 0 else { throw Failure("can't open \(path): \(systemError())") }
    }

    init(reading pipe: (readEnd: Int32, writeEnd: Int32)) {
        (given, kept) = (pipe.readEnd, pipe.writeEnd)
    }

    init(writing pipe: (readEnd: Int32, writeEnd: Int32)) {
        (given, kept) = (pipe.writeEnd, pipe.readEnd)
    }
}
