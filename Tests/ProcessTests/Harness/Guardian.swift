import Foundation
import Spawning
import Synchronization

/// Kills the processes that this process has started, if it is killed itself.
///
/// A shell reads which processes are running and which have ended. When its input ends, it kills those
/// that are still running. It has its own process group, so that Ctrl-C doesn't end it first.
final class Guardian: Sendable {
    static let shared = Guardian()

    private static let script = """
        left=' '
        while read -r what id; do
            case $what in
            watch) left="$left$id " ;;
            forget) left="${left%% "$id" *} ${left#* "$id" }" ;;
            esac
        done
        for id in $left; do kill -9 "$id"; done 2>/dev/null
        """

    private let descriptor: Mutex<Int32>

    private init() {
        // Writing to a child that has ended should be an error to report, not the end of the tests.
        signal(SIGPIPE, SIG_IGN)
        let nothing = open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { close(nothing) }
        do {
            let pipe = try makePipe()
            _ = try spawn(
                "/bin/sh", ["-c", Self.script], ["PATH": "/usr/bin:/bin"],
                descriptors: [pipe.readEnd, nothing, nothing], isGroupLeader: true)
            close(pipe.readEnd)
            descriptor = Mutex(pipe.writeEnd)
        } catch {
            preconditionFailure("no guardian: \(error)")
        }
    }

    func watch(_ processID: pid_t) { say("watch \(processID)") }

    /// Is called before the process is reaped, while no other process can have its id.
    func forget(_ processID: pid_t) { say("forget \(processID)") }

    private func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        let written = descriptor.withLock { write($0, bytes, bytes.count) }
        precondition(written == bytes.count, "the guardian is gone: \(systemError())")
    }
}
