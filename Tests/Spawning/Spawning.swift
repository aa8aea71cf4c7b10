import CSockets
import Foundation

/// Makes a pipe.
package func makePipe() throws -> (readEnd: Int32, writeEnd: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Failure("no pipe: \(systemError())") }
    return (ends[0], ends[1])
}

/// Starts a process with its descriptors 0, 1, 2 and so on. It inherits no others: an end of a pipe would keep that
/// pipe open. A group leader doesn't get signals from the terminal.
package func spawn(
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
    _ = conflux_spawn_close_from(&actions, Int32(descriptors.count))

    // The process starts with the signals as a shell would set them, whatever this process has set.
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
            posix_spawn(&processID, executable, &actions, &attributes, arguments, environment)
        }
    }
    guard failure == 0 else {
        throw Failure("can't start \(executable): \(String(cString: strerror(failure)))")
    }
    return processID
}

/// Runs a program to its end, with some input, which must fit into a pipe.
///
/// - Returns: Its exit code, or 128 and the signal that ended it, and what it printed.
/// - Throws: ``Failure`` if it can't be started, or an error of its pipes.
package func run(
    _ executable: String, _ arguments: [String], _ environment: [String: String] = [:],
    input: String = ""
) throws -> (status: Int32, output: String, errors: String) {
    let (read, write) = (try makePipe(), try makePipe())
    let errors = try makePipe()
    var given = [read.readEnd, write.writeEnd, errors.writeEnd]
    let feed = FileHandle(fileDescriptor: read.writeEnd, closeOnDealloc: true)
    let output = FileHandle(fileDescriptor: write.readEnd, closeOnDealloc: true)
    let words = FileHandle(fileDescriptor: errors.readEnd, closeOnDealloc: true)
    func closeGiven() {
        for descriptor in given { close(descriptor) }
        given = []
    }
    defer { closeGiven() }
    let processID = try spawn(executable, arguments, environment, descriptors: given)
    closeGiven()
    try feed.write(contentsOf: Data(input.utf8))
    try feed.close()
    let text = try output.readToEnd() ?? Data()
    let complaint = try words.readToEnd() ?? Data()
    return (
        awaitEnd(of: processID), String(decoding: text, as: UTF8.self),
        String(decoding: complaint, as: UTF8.self)
    )
}

/// Waits until a process that this one has started ends.
///
/// - Returns: Its exit code, or 128 and the signal that ended it.
@discardableResult
package func awaitEnd(of processID: pid_t) -> Int32 {
    var status: Int32 = 0
    while waitpid(processID, &status, 0) < 0, errno == EINTR {}
    let signal = status & 0x7F
    return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
}

private func withStrings<Result>(
    _ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
    let strings = texts.map { strdup($0) }
    defer { for string in strings { free(string) } }
    return body(strings + [nil])
}

package func systemError() -> String { String(cString: strerror(errno)) }

/// Why a test can't continue.
package struct Failure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
