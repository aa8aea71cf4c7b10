import Foundation
import Synchronization

/// Held while a process is started, and while a pipe is made whose ends can still be inherited: who
/// inherits an end keeps the pipe from ending.
private let starting = Mutex(())

/// Makes a pipe that no process inherits.
func uninheritedPipe() throws -> (readEnd: Int32, writeEnd: Int32) {
    try starting.withLock { _ in
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw Failure("no pipe: \(systemError())") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }
}

/// Starts a process with its descriptors 0, 1, 2 …; signals from the terminal do not reach one that
/// is a group leader.
func spawn(
    _ executable: String, _ arguments: [String], _ environment: [String: String],
    descriptors: [Int32], isGroupLeader: Bool = false
) throws -> pid_t {
    #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
        var flags = POSIX_SPAWN_CLOEXEC_DEFAULT
    #else
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        var flags = Int32(0)
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, descriptor) in descriptors.enumerated() {
        posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(number))
    }

    // A process begins as from a shell, whatever this one does with its signals.
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var (blocked, standard) = (sigset_t(), sigset_t())
    sigemptyset(&blocked)
    sigemptyset(&standard)
    for number in [SIGPIPE, SIGINT, SIGTERM, SIGHUP] { sigaddset(&standard, number) }
    posix_spawnattr_setsigmask(&attributes, &blocked)
    posix_spawnattr_setsigdefault(&attributes, &standard)
    flags |= Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)
    if isGroupLeader { flags |= Int32(POSIX_SPAWN_SETPGROUP) }
    posix_spawnattr_setflags(&attributes, Int16(flags))

    var processID: pid_t = 0
    let failure = withStrings([executable] + arguments) { arguments in
        withStrings(environment.map { "\($0)=\($1)" }) { environment in
            starting.withLock { _ in
                posix_spawn(&processID, executable, &actions, &attributes, arguments, environment)
            }
        }
    }
    guard failure == 0 else {
        throw Failure("can't start \(executable): \(String(cString: strerror(failure)))")
    }
    return processID
}

private func withStrings<Result>(
    _ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
    let strings = texts.map { strdup($0) }
    defer { for string in strings { free(string) } }
    return body(strings + [nil])
}

func systemError() -> String { String(cString: strerror(errno)) }

/// Why a test can't go on.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
