import ConfluxSystem
import ConfluxWorker
import Dispatch
import Foundation
import Synchronization

/// A command that runs as a process of its own, with the standard input and output of this one.
///
/// It stays in the process group of this one, so that it may use the terminal.
final class LockedCommand: Sendable {
    private enum Phase {
        case running([CheckedContinuation<Int32, Never>])
        /// With its exit code, or 128 and the signal that ended it.
        case ended(Int32)
    }

    private let processID: pid_t
    private let phase = Mutex(Phase.running([]))

    /// Starts the command.
    ///
    /// - Parameters:
    ///   - words: The program, which is looked for in the path, and its arguments. Not empty.
    ///   - variables: What its environment has besides that of this process.
    /// - Throws: ``CommandFailure`` if it can't be started.
    init(_ words: [String], _ variables: [String: String]) throws(CommandFailure) {
        processID = try Self.spawn(words, variables)
        let thread = Thread { self.awaitEnd() }
        thread.name = "conflux-command"
        thread.start()
    }

    /// Waits for its end.
    ///
    /// - Returns: Its exit code, or 128 and the signal that ended it.
    func ended() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status = phase.withLock { phase -> Int32? in
                switch phase {
                case .ended(let status): return status
                case .running(let waiting):
                    phase = .running(waiting + [continuation])
                    return nil
                }
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    /// Ends it: with SIGTERM, and with SIGKILL if it takes longer than a time. It returns at once.
    func end(within grace: Duration) {
        signal(SIGTERM)
        // A process that is stopped gets the signal once it continues.
        signal(SIGCONT)
        DispatchQueue.global().asyncAfter(deadline: .now() + grace.dispatchInterval) {
            self.signal(SIGKILL)
        }
    }

    /// Until the process is reaped, under the lock, no other process can have its number.
    private func signal(_ number: Int32) {
        phase.withLock { phase in
            if case .running = phase { kill(processID, number) }
        }
    }

    private func awaitEnd() {
        var info = siginfo_t()
        while waitid(P_PID, id_t(processID), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        var status: Int32 = 0
        let waiting = phase.withLock { phase -> [CheckedContinuation<Int32, Never>] in
            while waitpid(processID, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7F
            status = signal == 0 ? (status >> 8) & 0xFF : 128 + signal
            guard case .running(let waiting) = phase else { return [] }
            phase = .ended(status)
            return waiting
        }
        for continuation in waiting { continuation.resume(returning: status) }
    }

    private static func spawn(
        _ words: [String], _ variables: [String: String]
    ) throws(CommandFailure) -> pid_t {
        #if canImport(Darwin)
            var attributes: posix_spawnattr_t?
            var flags = POSIX_SPAWN_CLOEXEC_DEFAULT
            var actions: posix_spawn_file_actions_t?
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            for descriptor in 0..<3 {
                posix_spawn_file_actions_addinherit_np(&actions, Int32(descriptor))
            }
        #else
            var attributes = posix_spawnattr_t()
            var flags = Int32(0)
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
        #endif
        // This process ignores SIGPIPE, and its threads may block signals. The command does neither.
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (blocked, standard) = (sigset_t(), sigset_t())
        sigemptyset(&blocked)
        sigemptyset(&standard)
        sigaddset(&standard, SIGPIPE)
        posix_spawnattr_setsigmask(&attributes, &blocked)
        posix_spawnattr_setsigdefault(&attributes, &standard)
        flags |= Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        let arguments = words.map { strdup($0) }
        let environment = environment(with: variables)
        defer { for text in arguments + environment { free(text) } }
        var processID: pid_t = 0
        let failure = posix_spawnp(
            &processID, words[0], &actions, &attributes, arguments + [nil], environment + [nil])
        guard failure == 0 else {
            let reason = SystemFailure(failure, at: words[0]).reason(
                advice: "Name a program that there is.")
            throw CommandFailure(
                .noInput, code: "noCommand", "\(words[0]) can't be started: \(reason)")
        }
        return processID
    }

    /// The environment of this process, octet for octet, with other values of some variables. The caller frees it.
    private static func environment(
        with variables: [String: String]
    ) -> [UnsafeMutablePointer<CChar>?] {
        typealias Entries = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
        #if canImport(Darwin)
            var entry = _NSGetEnviron().pointee as Entries?
        #else
            var entry = environ as Entries?
        #endif
        var environment = variables.map { strdup("\($0)=\($1)") }
        while let text = entry?.pointee {
            let isReplaced = variables.keys.contains {
                strncmp(text, "\($0)=", $0.utf8.count + 1) == 0
            }
            if !isReplaced { environment.append(strdup(text)) }
            entry = entry?.successor()
        }
        return environment
    }
}
