import Conflux
import Foundation
import Synchronization

/// Runs this program again in a process of its own, for work that may trap or never end.
struct OwnProgram {
    /// How a run ended.
    enum End: Equatable {
        case exit(Int32)
        case signal(Int32)
        /// It was killed because it took too long.
        case late
    }

    let arguments: [String]
    /// Gets what it prints.
    let output: URL
    /// Gets its diagnostics.
    let errors: URL

    /// Starts it, and waits for its end. If the task is cancelled, it is killed.
    ///
    /// - Parameter timeout: How long it may take.
    /// - Returns: How it ended.
    /// - Throws: Why it can't be started.
    func run(within timeout: Duration) async throws(CommandFailure) -> End {
        guard let program = Bundle.main.executablePath else {
            throw CommandFailure(
                .failed, "This program can't start itself again: it does not know its file.")
        }
        let process = Process()
        // A backtrace would take longer than all the rest.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["SWIFT_BACKTRACE=enable=no", program] + arguments
        process.standardInput = FileHandle.nullDevice
        let (ends, ending) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in ending.finish() }
        do {
            for file in [output, errors] { try Data().write(to: file) }
            process.standardOutput = try FileHandle(forWritingTo: output)
            process.standardError = try FileHandle(forWritingTo: errors)
            try process.run()
        } catch {
            throw CommandFailure(
                .failed,
                "This program can't start itself again: \(error). Let \(program) be executable, and run the command again."
            )
        }
        let isLate = Atomic(false)
        let end: @Sendable () -> Void = {
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        }
        let timer = DispatchWorkItem {
            isLate.store(true, ordering: .relaxed)
            end()
        }
        DispatchQueue.global().asyncAfter(
            deadline: .now() + timeout.dispatchInterval, execute: timer)
        await withTaskCancellationHandler {
            for await _ in ends {}
        } onCancel: {
            end()
        }
        timer.cancel()
        if isLate.load(ordering: .relaxed) { return .late }
        return process.terminationReason == .exit
            ? .exit(process.terminationStatus) : .signal(process.terminationStatus)
    }
}
