import Foundation
import Spawning
import Synchronization

/// Kills what this process started and left behind, should it be killed itself.
///
/// A shell reads which processes there are, and which are gone. When its input ends, it kills those
/// that are left. It is a process group of its own, so that Ctrl-C does not end it first.
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
        // Writing to a child that is gone is an error to be reported, not the end of the tests.
        signal(SIGPIPE, SIG_IGN)
        let nothing = open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { close(nothing) }
        do {
            let pipe = try uninheritedPipe()
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

    /// Called before the process is reaped, while its id is still its own.
    func forget(_ processID: pid_t) { say("forget \(processID)") }

    private func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        let written = descriptor.withLock { write($0, bytes, bytes.count) }
        precondition(written == bytes.count, "the guardian is gone: \(systemError())")
    }
}
