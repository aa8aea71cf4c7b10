#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif
import ConfluxVocabulary

/// Waits until one of several sockets is ready, or its thread is woken.
///
/// Owned by the thread that owns the sockets and the waker. Readiness is level-triggered: a socket
/// from which not everything was taken is ready again at once.
public final class Poller {
    /// The place of a socket in a poller.
    public struct Token: Hashable, Sendable {
        fileprivate let index: Int
    }

    /// The result of a wait.
    public struct Readiness: Sendable, Hashable {
        fileprivate var readable: UInt64 = 0
        /// Whether the waker was called since the previous wait.
        public fileprivate(set) var isWoken = false

        /// Whether a socket has something to do: mostly, a message is there. Its `receive` does it.
        public func isReadable(_ token: Token) -> Bool { readable & (1 << token.index) != 0 }
        /// Whether the time ran out before anything happened.
        public var isTimeout: Bool { readable == 0 && !isWoken }
    }

    /// The most sockets of a poller: one for each bit of a word.
    public static let socketsMax = 64
    /// The longest time for which a wait polls.
    public static let pollingMax = Duration.milliseconds(10)

    private let waker: Waker
    private var sockets: [PolledSocket?] = []
    /// The waker's item, then one for each of `sockets`.
    private var items: [pollfd]
    private var polling = BriefPolling()

    /// Makes a poller without sockets.
    ///
    /// - Parameter waker: With it, other threads wake this one.
    public init(waker: Waker) {
        self.waker = waker
        items = [pollfd(fd: waker.readEnd, events: Int16(POLLIN), revents: 0)]
    }

    /// Adds a socket: from now on, waits include it.
    ///
    /// - Parameter socket: The socket. The poller retains it until it is removed.
    /// - Returns: The token with which you ask a ``Readiness`` about it.
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

    /// Removes a socket, and releases it. Remove a socket before you close it.
    ///
    /// - Parameter token: The socket's token. Another socket may get it later.
    public func remove(_ token: Token) {
        sockets[token.index]?.waker = nil
        sockets[token.index] = nil
        // The system skips items without a descriptor.
        items[token.index + 1] = pollfd(fd: -1, events: 0, revents: 0)
    }

    /// Sleeps until a socket is ready, the waker is called, or the time is over.
    ///
    /// A thread that sleeps is woken late: its processor has to wake, too, and its caches are cold. So if the last wait
    /// was short, this one begins with polling. Meanwhile other threads have the processor if they need it. A thread
    /// that waits for long sleeps at once.
    ///
    /// - Parameters:
    ///   - timeout: How long at most, rounded up to milliseconds; nil for any time; zero to check
    ///     without waiting.
    ///   - busyMax: How long to poll before sleeping, if the last such wait took no longer; zero for not at all.
    ///   - around: Called with a function that sleeps, which it must call. During the sleep the poller does not touch
    ///     the sockets. So `around` may release a lock for that time, and other threads may use the sockets under
    ///     this lock. A thread that does so must wake this one if it leaves a socket readable.
    /// - Returns: What is ready.
    /// - Throws: `closed` if a socket was closed and not removed.
    public func wait(
        timeout: Duration? = nil, pollingFor busyMax: Duration = .zero,
        around: (_ wait: () -> Void) -> Void = { $0() }
    ) throws(ZeroMQError) -> Readiness {
        for socket in sockets where socket?.isClosed == true { throw .socketClosed }
        let begun = Moment.now.monotonic
        let deadline = timeout.map { begun + $0 }
        let busyMax = min(busyMax, Self.pollingMax)
        defer { polling.end(begun, busyMax: busyMax) }
        while true {
            var readiness = Readiness()
            let next = lookAtSockets(into: &readiness)
            let mayWait = readiness.isTimeout && waker.beginSleep()
            let end = if let deadline { min(deadline, next ?? deadline) } else { next }
            let milliseconds = mayWait ? Self.milliseconds(until: end) : 0
            var number: Int32 = 0
            items.withUnsafeMutableBufferPointer { items in
                let (first, count) = (items.baseAddress, nfds_t(items.count))
                func look() {
                    var found =
                        milliseconds == 0
                        ? 0 : polling.poll(for: busyMax, since: begun) { poll(first, count, 0) }
                    if found == 0 { found = poll(first, count, milliseconds) }
                    if found < 0 { number = errno }
                }
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
