import CZeroMQ

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
    private var sockets: [ZeroMQSocket?] = []
    /// The waker first, then one for each of `sockets`.
    private var items: [zmq_pollitem_t]

    /// Makes a poller without sockets.
    ///
    /// - Parameter waker: What others wake this thread with.
    public init(waker: Waker) {
        self.waker = waker
        items = [
            zmq_pollitem_t(socket: nil, fd: waker.readEnd, events: Int16(ZMQ_POLLIN), revents: 0)
        ]
    }

    /// Waits for a socket too, from now on.
    ///
    /// - Parameters:
    ///   - socket: The socket; the poller keeps it until it is removed.
    ///   - interest: What to wait for.
    /// - Returns: The name by which a readiness is asked about it.
    /// - Throws: `closed`; `tooManyOpen` if there are `socketsMax` already.
    public func add(
        _ socket: ZeroMQSocket, _ interest: Interest = .readable
    ) throws(ZeroMQError) -> Token {
        let raw = try socket.open()
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
            items.append(zmq_pollitem_t())
        }
        sockets[index] = socket
        items[index + 1] = zmq_pollitem_t(
            socket: raw, fd: 0, events: Self.events(of: interest), revents: 0)
        return Token(index: index)
    }

    /// Waits for a socket no more, and releases it. Do so before closing it.
    ///
    /// - Parameter token: The socket; its token may be given to another one.
    public func remove(_ token: Token) {
        sockets[token.index] = nil
        // What is left waits for nothing: the waker's descriptor without events.
        items[token.index + 1] = zmq_pollitem_t(
            socket: nil, fd: waker.readEnd, events: 0, revents: 0)
    }

    /// Sleeps until a socket is ready, the waker is called, or the time is over.
    ///
    /// - Parameter timeout: How long at most, rounded up to milliseconds; nil for as long as it
    ///   takes; zero to look only.
    /// - Returns: What is ready.
    /// - Throws: `closed` if a socket was closed and not removed; `terminated`.
    public func wait(timeout: Duration? = nil) throws(ZeroMQError) -> Readiness {
        // libzmq must not be given a closed socket: it would read freed memory.
        for socket in sockets where socket?.isClosed == true { throw .socketClosed }
        let deadline = timeout.map { ContinuousClock.now + $0 }
        while true {
            let mayWait = waker.beginSleep() && !sockets.contains { $0?.hasTakenInput == true }
            let milliseconds = mayWait ? Waker.milliseconds(until: deadline) : 0
            let count = zmq_poll(&items, Int32(items.count), Int(milliseconds))
            let number = count < 0 ? zmq_errno() : 0
            var readiness = Readiness()
            readiness.isWoken = waker.endSleep(
                isSignalled: count > 0 && items[0].revents != 0)
            if number != 0 {
                guard number == EINTR else { throw .system(number, "Waiting for sockets") }
            } else {
                collect(into: &readiness)
            }
            if !readiness.isTimeout { return readiness }
            if let deadline, ContinuousClock.now >= deadline { return readiness }
        }
    }

    private func collect(into readiness: inout Readiness) {
        for index in sockets.indices {
            let events = Int32(items[index + 1].revents)
            guard let socket = sockets[index] else { continue }
            if socket.hasTakenInput { readiness.readable |= 1 << index }
            if events == 0 { continue }
            if events & ZMQ_POLLIN != 0 { readiness.readable |= 1 << index }
            if events & ZMQ_POLLOUT != 0 { readiness.writable |= 1 << index }
        }
    }

    private static func events(of interest: Interest) -> Int16 {
        Int16(
            (interest.contains(.readable) ? ZMQ_POLLIN : 0)
                | (interest.contains(.writable) ? ZMQ_POLLOUT : 0))
    }
}
