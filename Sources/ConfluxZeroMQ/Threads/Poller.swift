#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif
import ConfluxVocabulary

/// Waits until one of several sockets is ready, or its thread is woken.
///
/// Owned by the thread that owns the sockets and the waker. Readiness is a level: a socket of
/// which not everything was taken is ready again at once.
public final class Poller {
    /// The place of a socket in a poller.
    public struct Token: Hashable, Sendable {
        fileprivate let index: Int
    }

    /// What a wait ended with.
    public struct Readiness: Sendable, Hashable {
        fileprivate var readable: UInt64 = 0
        /// Whether the waker was called since the last wait.
        public fileprivate(set) var isWoken = false

        /// Whether a socket has something to do, which its `receive` does: mostly, a message waits.
        public func isReadable(_ token: Token) -> Bool { readable & (1 << token.index) != 0 }
        /// Whether the time was over before anything happened.
        public var isTimeout: Bool { readable == 0 && !isWoken }
    }

    /// How many sockets a poller holds: the bits of a word.
    public static let socketsMax = 64

    private let waker: Waker
    private var sockets: [PolledSocket?] = []
    /// The waker first, then one for each of `sockets`.
    private var items: [pollfd]

    /// Makes a poller without sockets.
    ///
    /// - Parameter waker: What others wake this thread with.
    public init(waker: Waker) {
        self.waker = waker
        items = [pollfd(fd: waker.readEnd, events: Int16(POLLIN), revents: 0)]
    }

    /// Waits for a socket too, from now on.
    ///
    /// - Parameter socket: The socket; the poller keeps it until it is removed.
    /// - Returns: The name by which a readiness is asked about it.
    /// - Throws: `closed`; `tooManyOpen` if there are `socketsMax` already.
    public func add(_ socket: PolledSocket) throws(ZeroMQError) -> Token {
        guard !socket.isClosed else { throw .socketClosed }
        let index: Int
        if let free = sockets.firstIndex(where: { $0 == nil }) {
            index = free
        } else {
            guard sockets.count < Self.socketsMax else {
                throw ZeroMQError(
                    .tooManyOpen, "A poller waits for \(Self.socketsMax) sockets. Make another.")
            }
            index = sockets.count
            sockets.append(nil)
            items.append(pollfd(fd: -1, events: 0, revents: 0))
        }
        sockets[index] = socket
        socket.waker = waker
        return Token(index: index)
    }

    /// Waits for a socket no more, and releases it. Do so before closing it.
    ///
    /// - Parameter token: The socket; its token may be given to another one.
    public func remove(_ token: Token) {
        sockets[token.index]?.waker = nil
        sockets[token.index] = nil
        // The system passes over what has no descriptor.
        items[token.index + 1] = pollfd(fd: -1, events: 0, revents: 0)
    }

    /// Sleeps until a socket is ready, the waker is called, or the time is over.
    ///
    /// - Parameters:
    ///   - timeout: How long at most, rounded up to milliseconds; nil for as long as it
    ///     takes; zero to look only.
    ///   - around: Given the sleep, and does it. While it lasts nothing of the sockets is touched, so that
    ///     others may use them under a lock that is let go around it. Who does so wakes this thread where a
    ///     socket is readable then.
    /// - Returns: What is ready.
    /// - Throws: `closed` if a socket was closed and not removed.
    public func wait(
        timeout: Duration? = nil, around: (_ wait: () -> Void) -> Void = { $0() }
    ) throws(ZeroMQError) -> Readiness {
        for socket in sockets where socket?.isClosed == true { throw .socketClosed }
        let deadline = timeout.map { Moment.now.monotonic + $0 }
        while true {
            var readiness = Readiness()
            let next = lookAtSockets(into: &readiness)
            let mayWait = readiness.isTimeout && waker.beginSleep()
            let end = if let deadline { min(deadline, next ?? deadline) } else { next }
            let milliseconds = mayWait ? Self.milliseconds(until: end) : 0
            var number: Int32 = 0
            items.withUnsafeMutableBufferPointer { items in
                let (first, count) = (items.baseAddress, nfds_t(items.count))
                func look() { if poll(first, count, milliseconds) < 0 { number = errno } }
                if milliseconds == 0 { look() } else { around(look) }
            }
            readiness.isWoken = waker.endSleep(isSignalled: items[0].revents != 0)
            guard number == 0 || number == EINTR else {
                throw .system(number, "Waiting for sockets")
            }
            for index in sockets.indices where items[index + 1].revents != 0 {
                readiness.readable |= 1 << index
            }
            if !readiness.isTimeout { return readiness }
            if let deadline, Moment.now.monotonic >= deadline { return readiness }
        }
    }

    /// Asks each socket what to wait for, and whether it is ready by itself.
    ///
    /// - Returns: When the next one will be.
    private func lookAtSockets(into readiness: inout Readiness) -> Duration? {
        var next: Duration?
        for index in sockets.indices {
            guard let socket = sockets[index] else { continue }
            items[index + 1] = pollfd(fd: socket.descriptor, events: socket.signals, revents: 0)
            if socket.isReady { readiness.readable |= 1 << index }
            guard let deadline = socket.deadline else { continue }
            if deadline <= Moment.now.monotonic {
                readiness.readable |= 1 << index
            } else {
                next = min(next ?? deadline, deadline)
            }
        }
        return next
    }

    private static func milliseconds(until deadline: Duration?) -> Int32 {
        guard let deadline else { return -1 }
        return (deadline - Moment.now.monotonic).wholeMilliseconds
    }
}
