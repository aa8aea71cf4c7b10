import Foundation
import Synchronization

/// A child process that this library starts.
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

    private let process = Process()
    private let hasEnded: AsyncStream<Void>
    private let isLate = Atomic(false)
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
        _ program: URL, _ arguments: [String], environment: [String: String], output: URL,
        timeout: Duration
    ) throws(CheckFailure) {
        process.executableURL = program
        process.arguments = arguments
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        hasEnded = stream
        process.terminationHandler = { _ in continuation.finish() }
        do {
            try Data().write(to: output)
            let file = try FileHandle(forWritingTo: output)
            process.standardOutput = file
            process.standardError = file
            try process.run()
            try file.close()
        } catch {
            throw CheckFailure(message: "\(program.path) can't be started: \(error)")
        }
        let deadline = Deadline(in: timeout) { [weak self] in
            self?.isLate.store(true, ordering: .relaxed)
            self?.kill()
        }
        self.deadline.withLock { $0 = deadline }
    }

    /// Kills the process.
    func kill() {
        // After the process was waited for, its number may belong to another one.
        if process.isRunning { _ = Foundation.kill(process.processIdentifier, SIGKILL) }
    }

    /// Waits until the process has ended, or kills it if the task is cancelled.
    func end(isolation: isolated (any Actor)? = #isolation) async -> End {
        for await _ in hasEnded {}
        deadline.withLock { $0 }?.cancel()
        let isCancelled = process.isRunning && Task.isCancelled
        if isCancelled { kill() }
        process.waitUntilExit()
        if isCancelled { return .cancelled }
        if isLate.load(ordering: .relaxed) { return .late }
        let status = process.terminationStatus
        return process.terminationReason == .exit ? .exit(status) : .signal(status)
    }
}
