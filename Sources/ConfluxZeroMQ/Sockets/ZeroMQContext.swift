import CZeroMQ
import Synchronization

/// The home of sockets: libzmq's I/O threads and `inproc` names.
///
/// A socket keeps its context alive, so that releasing both in any order is safe. The last
/// release terminates the context and waits until what sockets still had to send is sent, or
/// their linger time is over. `terminate()` does the same at a moment of your choice.
///
/// May be used from any thread.
public final class ZeroMQContext: Sendable {
    private struct State {
        var openSockets = 0
        var isTerminated = false
    }

    // libzmq's contexts are thread-safe; only `terminate` and `deinit` end this one, once.
    nonisolated(unsafe) private let raw: UnsafeMutableRawPointer
    private let state = Mutex(State())

    /// Makes a context.
    ///
    /// - Parameters:
    ///   - ioThreads: How many threads carry bytes, 1 to 16. One moves a gigabyte a second.
    ///   - socketsMax: How many sockets may be open at a time, 1 to 65,535.
    /// - Throws: `invalidSetting`, `tooManyOpen` or `outOfMemory`.
    public init(ioThreads: Int = 1, socketsMax: Int = 1_023) throws(ZeroMQError) {
        guard (1...16).contains(ioThreads), (1...65_535).contains(socketsMax) else {
            throw ZeroMQError(
                .invalidSetting,
                "A context has 1 to 16 I/O threads and 1 to 65,535 sockets; "
                    + "\(ioThreads) and \(socketsMax) were asked for.")
        }
        guard let raw = zmq_ctx_new() else {
            throw ZeroMQError.system(zmq_errno(), "Making a ZeroMQ context")
        }
        self.raw = raw
        let settings = [
            (ZMQ_IO_THREADS, Int32(ioThreads)), (ZMQ_MAX_SOCKETS, Int32(socketsMax)),
        ]
        for (option, value) in settings where zmq_ctx_set(raw, option, value) != 0 {
            throw ZeroMQError.system(zmq_errno(), "Setting up a ZeroMQ context")
        }
    }

    /// Ends the context and waits until the sockets' last messages are sent, or their linger time
    /// is over. Doing it again does nothing.
    ///
    /// - Throws: `socketsOpen` while a socket of it is open: close them first.
    public func terminate() throws(ZeroMQError) {
        let (mine, open) = state.withLock { state in
            guard state.openSockets == 0, !state.isTerminated else {
                return (false, state.openSockets)
            }
            state.isTerminated = true
            return (true, 0)
        }
        guard open == 0 else {
            throw ZeroMQError(
                .socketsOpen, "\(open) sockets of the context are open. Close them first.")
        }
        if mine { end() }
    }

    /// Makes every call on its sockets fail with `terminated`, and new sockets impossible.
    ///
    /// For the emergency exit of another thread; the sockets must still be closed by their
    /// owners. May be repeated.
    public func shutDown() {
        state.withLock { state in
            if !state.isTerminated { zmq_ctx_shutdown(raw) }
        }
    }

    deinit {
        if !state.withLock({ $0.isTerminated }) { end() }
    }

    private func end() {
        while zmq_ctx_term(raw) != 0 && zmq_errno() == EINTR {}
    }

    func openSocket(type: Int32) throws(ZeroMQError) -> UnsafeMutableRawPointer {
        // Counted first, so that the context cannot end meanwhile.
        let isOpen = state.withLock { state in
            if !state.isTerminated { state.openSockets += 1 }
            return !state.isTerminated
        }
        guard isOpen else { throw ZeroMQError.system(ETERM, "Opening a socket") }
        guard let socket = zmq_socket(raw, type) else {
            let number = zmq_errno()
            state.withLock { $0.openSockets -= 1 }
            throw ZeroMQError.system(number, "Opening a socket")
        }
        return socket
    }

    func closeSocket(_ socket: UnsafeMutableRawPointer) {
        zmq_close(socket)
        state.withLock { $0.openSockets -= 1 }
    }
}
