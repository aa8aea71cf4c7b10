import Dispatch
import Foundation
import Synchronization

/// What this process does when it gets a signal.
///
/// The system calls a handler on whichever thread the signal meets. The handler only puts the signal's
/// number into a pipe, and whoever reads the pipe does the rest. A `DispatchSourceSignal` is no
/// substitute on Linux: it passes the signal on to one thread, and loses it if that thread does not read it.
package enum Signals {
    private static let bodies = Mutex<[Int32: @Sendable () -> Void]>([:])
    /// Where the handler writes; -1 before there is a pipe.
    // Written once, by the thread that makes the pipe, before there is a handler that reads it.
    fileprivate nonisolated(unsafe) static var writeEnd: Int32 = -1
    /// What reads the pipe, for as long as the process lives. nil if the system has no pipe left: then
    /// signals do what they do by default.
    // Immutable once made; a source is thread-safe itself.
    private nonisolated(unsafe) static let reader = makeReader()

    /// Has a function called at each signal of a kind from now on, on another thread, one call after the
    /// other, whatever the signal.
    ///
    /// - Parameters:
    ///   - number: The signal.
    ///   - body: The function; it replaces the one before.
    package static func handle(_ number: Int32, by body: @escaping @Sendable () -> Void) {
        bodies.withLock { $0[number] = body }
        guard reader != nil else { return }
        signal(number, noteSignal)
    }

    private static func makeReader() -> (any DispatchSourceRead)? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        writeEnd = ends[1]
        let readEnd = ends[0]
        let source = DispatchSource.makeReadSource(
            fileDescriptor: readEnd, queue: DispatchQueue(label: "conflux-signals"))
        source.setEventHandler {
            var numbers = [UInt8](repeating: 0, count: 64)
            let count = read(readEnd, &numbers, numbers.count)
            for number in numbers.prefix(max(count, 0)) {
                bodies.withLock { $0[Int32(number)] }?()
            }
        }
        source.resume()
        return source
    }
}

/// Runs as a signal handler: nothing but what is safe there.
private func noteSignal(_ number: Int32) {
    let error = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(Signals.writeEnd, &byte, 1)
    errno = error
}
