import Dispatch
import Foundation
import Synchronization

/// Handles the signals of this process.
///
/// The system calls a handler on whichever thread gets the signal. The handler only writes the
/// signal's number into a pipe, and the reader of the pipe does the rest. A `DispatchSourceSignal`
/// does not replace this on Linux: it passes the signal on to one thread, and loses it if that
/// thread does not read it.
package enum Signals {
    private static let bodies = Mutex<[Int32: @Sendable () -> Void]>([:])
    /// The end of the pipe that the handler writes to; -1 before there is a pipe.
    // Written once, by the thread that makes the pipe, before there is a handler that uses it.
    fileprivate nonisolated(unsafe) static var writeEnd: Int32 = -1
    /// Reads the pipe while the process lives. nil if the system could make no pipe: then signals
    /// have their default effect.
    // Immutable once made. A source is itself thread-safe.
    private nonisolated(unsafe) static let reader = makeReader()

    /// Has a function called for each signal of a kind from now on. All such functions are called
    /// on one queue, one after the other.
    ///
    /// - Parameters:
    ///   - number: The signal.
    ///   - body: The function. It replaces an earlier one.
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

/// Runs as a signal handler, so it does only what is safe there.
private func noteSignal(_ number: Int32) {
    let error = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(Signals.writeEnd, &byte, 1)
    errno = error
}
