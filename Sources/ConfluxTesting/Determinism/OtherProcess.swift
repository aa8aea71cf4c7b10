import ConfluxSystem
import Foundation
import Synchronization

/// A process of this library's own.
///
/// It is started and waited for by the system's calls: `Foundation.Process` polls on the thread that waits, which a
/// task must not keep, and takes a process for running as long as another one that started beside it runs.
final class OtherProcess: Sendable {
    /// How it ended.
    enum End {
        case exit(Int32)
        case signal(Int32)
        /// It was killed because it took too long.
        case late
        /// It was killed because the task that waited for it was cancelled.
        case cancelled
    }

    private enum Phase {
        /// *Use*: each is resumed once, at the end.
        case running([CheckedContinuation<Void, Never>])
        /// With the status that `waitpid` gave.
        case ended(Int32)
    }

    private struct Content {
        var phase = Phase.running([])
        /// Why it was ended, if it was.
        var isLate = false
        var isCancelled = false
    }

    private let processID: pid_t
    private let content = Mutex(Content())
    private let deadline = Mutex<Deadline?>(nil)

    /// Starts the process, without input.
    ///
    /// - Parameters:
    ///   - program: The program.
    ///   - arguments: Its arguments.
    ///   - environment: Its whole environment.
    ///   - output: The file for what it prints.
    ///   - timeout: How long it may take; then it is killed.
    /// - Throws: ``CheckFailure`` if it can't be started.
    init(
        _ program: URL, _ arguments: [String], environment: OtherEnvironment, output: URL,
        timeout: Duration
    ) throws(CheckFailure) {
        processID = try Self.spawn(
            program.path, arguments, environment, output: output.path)
        let deadline = Deadline(in: timeout) { [weak self] in self?.kill { $0.isLate = true } }
        self.deadline.withLock { $0 = deadline }
        // A thread of its own may wait as long as it takes.
        Thread { [self] in awaitEnd() }.start()
    }

    /// Ends it, whatever it does.
    func kill() { kill { _ in } }

    /// Ends it if it still runs, and notes why.
    private func kill(_ note: (inout Content) -> Void) {
        content.withLock { content in
            // Once it was waited for, the number may be another process's.
            guard case .running = content.phase else { return }
            note(&content)
            _ = Foundation.kill(processID, SIGKILL)
        }
    }

    /// Waits for its end. If the task is cancelled, the process is ended.
    func end(isolation: isolated (any Actor)? = #isolation) async -> End {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let hasEnded = content.withLock { content in
                    guard case .running(let waiting) = content.phase else { return true }
                    content.phase = .running(waiting + [continuation])
                    return false
                }
                if hasEnded { continuation.resume() }
            }
        } onCancel: {
            kill { $0.isCancelled = true }
        }
        deadline.withLock { $0 }?.cancel()
        return content.withLock { content in
            guard case .ended(let status) = content.phase else {
                preconditionFailure("a process that was waited for has ended")
            }
            if content.isCancelled { return .cancelled }
            if content.isLate { return .late }
            let signal = status & 0x7F
            return signal == 0 ? .exit((status >> 8) & 0xFF) : .signal(signal)
        }
    }

    private func awaitEnd() {
        // It stays a zombie until the lock is held, so that `kill` never meets another process.
        var info = siginfo_t()
        while waitid(P_PID, id_t(processID), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        let waiting = content.withLock { content -> [CheckedContinuation<Void, Never>] in
            var status: Int32 = 0
            while waitpid(processID, &status, 0) < 0 {
                precondition(
                    errno == EINTR,
                    "the end of process \(processID) was lost: don't ignore SIGCHLD in a test")
            }
            guard case .running(let waiting) = content.phase else { return [] }
            content.phase = .ended(status)
            return waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Starts a process.
    private static func spawn(
        _ program: String, _ arguments: [String], _ environment: OtherEnvironment, output: String
    ) throws(CheckFailure) -> pid_t {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
            var attributes: posix_spawnattr_t?
        #else
            var actions = posix_spawn_file_actions_t()
            var attributes = posix_spawnattr_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(
            &actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        #if canImport(Darwin)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_CLOEXEC_DEFAULT))
        #endif
        let texts = ([program] + arguments).map { strdup($0) }
        let variables = environment.entries.map { strdup($0) }
        defer { for text in texts + variables { free(text) } }
        var processID: pid_t = 0
        let failure = posix_spawn(
            &processID, program, &actions, &attributes, texts + [nil], variables + [nil])
        guard failure == 0 else {
            let reason = SystemFailure(failure, at: program).reason(advice: "Run the test again.")
            throw CheckFailure(message: "\(program) can't be started: \(reason)")
        }
        return processID
    }
}
