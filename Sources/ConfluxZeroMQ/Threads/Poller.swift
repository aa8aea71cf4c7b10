#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Waits until one of several sockets is ready, or its thread is woken.
///
/// Owned by the thread that owns the sockets and the waker. Readiness is a level: a socket of
/// which not everything was taken is ready again at once.
public final class Poller {
    /// The place of a socket in a poller.
    public struct Token: Hashable, Sendable {
        fileprivate let index: Int
    }

    /// What to wait for.
    public struct Interest: OptionSet, Sendable, Hashable {
        /// The bits.
        public let rawValue: UInt8
        /// Makes a set from its bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }
        /// A message waits.
        public static let readable = Interest(rawValue: 1)
        /// A message could be queued. A connected socket is writable nearly always: ask for it
        /// only after `wouldBlock`.
        public static let writable = Interest(rawValue: 2)
    }

    /// What a wait ended with.
    public struct Readiness: Sendable, Hashable {
        fileprivate var readable: UInt64 = 0
        fileprivate var writable: UInt64 = 0
        /// Whether the waker was called since the last wait.
        public fileprivate(set) var isWoken = false

        /// Whether a message waits at a socket.
        public func isReadable(_ token: Token) -> Bool { readable & (1 << token.index) != 0 }
        /// Whether a socket takes a message.
        public func isWritable(_ token: Token) -> Bool { writable & (1 << token.index) != 0 }
        /// Whether the time was over before anything happened.
        public var isTimeout: Bool { readable == 0 && writable == 0 && !isWoken }
    }

    /// How many sockets a poller holds: the bits of a word.
    public static let socketsMax = 64

    private let waker: Waker
    private var sockets: [PolledSocket?] = []
    private var interests: [Int16] = []
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
    /// - Parameters:
    ///   - socket: The socket; the poller keeps it until it is removed.
    ///   - interest: What to wait for.
    /// - Returns: The name by which a readiness is asked about it.
    /// - Throws: `closed`; `tooManyOpen` if there are `socketsMax` already.
    public func add(
        _ socket: PolledSocket, _ interest: Interest = .readable
    ) throws(ZeroMQError) -> Token {
        let descriptor = try socket.descriptor()
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
            interests.append(0)
            items.append(pollfd())
        }
        sockets[index] = socket
        interests[index] = Self.events(of: interest)
        items[index + 1] = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return Token(index: index)
    }

    /// Waits for a socket no more, and releases it. Do so before closing it.
    ///
    /// - Parameter token: The socket; its token may be given to another one.
    public func remove(_ token: Token) {
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
    /// - Throws: `closed` if a socket was closed and not removed; `terminated`.
    public func wait(
        timeout: Duration? = nil, around: (_ wait: () -> Void) -> Void = { $0() }
    ) throws(ZeroMQError) -> Readiness {
        for socket in sockets where socket?.isClosed == true { throw .socketClosed }
        let deadline = timeout.map { ContinuousClock.now + $0 }
        while true {
            var readiness = Readiness()
            for index in sockets.indices where sockets[index]?.mayBeReady == true {
                try ask(index, 0, into: &readiness)
            }
            let mayWait = readiness.isTimeout && waker.beginSleep()
            let milliseconds = mayWait ? Waker.milliseconds(until: deadline) : 0
            var number: Int32 = 0
            items.withUnsafeMutableBufferPointer { items in
                for index in items.indices { items[index].revents = 0 }
                let (first, count) = (items.baseAddress, nfds_t(items.count))
                func look() { if poll(first, count, milliseconds) < 0 { number = errno } }
                if milliseconds == 0 { look() } else { around(look) }
            }
            readiness.isWoken = waker.endSleep(isSignalled: items[0].revents != 0)
            guard number == 0 || number == EINTR else {
                throw .system(number, "Waiting for sockets")
            }
            for index in sockets.indices where items[index + 1].revents != 0 {
                try ask(index, items[index + 1].revents, into: &readiness)
            }
            if !readiness.isTimeout { return readiness }
            if let deadline, ContinuousClock.now >= deadline { return readiness }
        }
    }

    private func ask(
        _ index: Int, _ signals: Int16, into readiness: inout Readiness
    ) throws(ZeroMQError) {
        guard let socket = sockets[index] else { return }
        let events = try socket.ready(for: interests[index], signals)
        if events & Int16(POLLIN) != 0 { readiness.readable |= 1 << index }
        if events & Int16(POLLOUT) != 0 { readiness.writable |= 1 << index }
    }

    private static func events(of interest: Interest) -> Int16 {
        Int16(
            (interest.contains(.readable) ? POLLIN : 0)
                | (interest.contains(.writable) ? POLLOUT : 0))
    }
}
