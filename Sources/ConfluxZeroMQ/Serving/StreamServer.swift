import CSockets

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The connections of a serving socket. They are read and written without blocking.
///
/// One descriptor (``readiness``) is readable when any of them has something to do. What can't be written at once is
/// queued here, and is written when the connection takes it. This type limits only the number of queued frames; the
/// caller limits their bytes.
///
/// A system call that fails for one connection ends that connection, and nothing else.
///
/// Owned by one thread at a time. *Invariant*: no two connections that exist at the same time have the same number, and
/// numbers are reused only after all others were used. So an event of a connection that has ended is not taken for
/// another connection's. No connection has the number 0.
final class StreamServer {
    /// What has happened.
    enum Event {
        /// The bell is readable.
        case rung
        /// A peer has sent these bytes, which are valid until the next call.
        case received(RoutingID, UnsafeRawBufferPointer)
        /// A connection has ended, and was closed.
        case ended(RoutingID)
    }

    fileprivate struct Connection {
        let descriptor: Int32
        var outbound = OutboundFrames()
        var turn = Turn()
    }

    /// How many bytes are read from one connection before others have their turn.
    ///
    /// Small messages cost as much as large ones. So a connection that sends many of them is read in small pieces, as
    /// is a new one.
    struct Turn {
        private(set) var bytes = Turn.bytesMin
        /// A piece that completes more messages than this makes the next one smaller.
        static let messagesMax = 128
        private static let bytesMin = 4 << 10
        static let bytesMax = 64 << 10
        /// How much larger the next piece may be. If it grew faster, a peer could send large messages and small ones
        /// alternately, and gain by it.
        private static let bytesStep = 8 << 10

        /// Sets the size of the next piece, after one that completed this many messages.
        mutating func took(messages: Int) {
            bytes =
                messages > Self.messagesMax
                ? max(Self.bytesMin, bytes * Self.messagesMax / messages)
                : min(Self.bytesMax, bytes + Self.bytesStep)
        }
    }

    /// Readable if there is something to do.
    let readiness: Int32
    private var connections: [RoutingID: Connection] = [:]
    /// Connections that could not be watched any more when something was sent, and whose end ``next()`` has yet to
    /// report.
    private var broken: [RoutingID] = []
    private var nextNumber: UInt32 = 1
    /// Descriptors that were reported as ready; those from `readyIndex` on have yet to be handled.
    private var ready = [conflux_ready](repeating: conflux_ready(), count: StreamServer.readyMax)
    private var readyCount = 0
    private var readyIndex = 0
    private let piece: UnsafeMutableRawBufferPointer
    private let settings: SocketSettings

    private static let readyMax = 64

    /// - Parameters:
    ///   - settings: How much may be queued, and how long closing may take.
    ///   - bell: A descriptor of the caller's that makes ``readiness`` readable, too.
    /// - Throws: `tooManyOpen`.
    init(_ settings: SocketSettings, bell: Int32) throws(ZeroMQError) {
        self.settings = settings
        readiness = conflux_watch_open()
        guard readiness >= 0, conflux_watch(readiness, bell, 0, 1, 0) == 0 else {
            let number = errno
            if readiness >= 0 { closeDescriptor(readiness) }
            throw .system(number, "Opening a socket")
        }
        piece = .allocate(byteCount: Turn.bytesMax, alignment: 16)
    }

    deinit {
        for connection in connections.values { closeDescriptor(connection.descriptor) }
        closeDescriptor(readiness)
        piece.deallocate()
    }

    // MARK: Connections

    /// Adds a connection.
    ///
    /// - Parameter descriptor: The connection, which is closed here.
    /// - Returns: Its id; nil if the system can't watch another descriptor: then the connection is closed.
    func adopt(_ descriptor: Int32) -> RoutingID? {
        while nextNumber == 0 || connections[RoutingID(number: nextNumber)] != nil {
            nextNumber = nextNumber &+ 1
        }
        let id = RoutingID(number: nextNumber)
        nextNumber = nextNumber &+ 1
        guard conflux_watch(readiness, descriptor, id.number, 1, 0) == 0 else {
            closeDescriptor(descriptor)
            return nil
        }
        connections[id] = Connection(descriptor: descriptor)
        return id
    }

    /// Watches whether a connection can be written to, or no longer.
    ///
    /// - Returns: False if the system can't do that. Then the connection must end.
    private func watch(_ descriptor: Int32, _ id: RoutingID, isWriting: Bool) -> Bool {
        conflux_watch(readiness, descriptor, id.number, 0, isWriting ? 1 : 0) == 0
    }

    // MARK: Events

    /// Handles the next thing that is ready.
    ///
    /// - Returns: What has happened; nil if nothing is ready, or if everything that was ready has been handled once:
    ///   then the descriptor says whether there is more.
    func next() -> Event? {
        while let id = broken.popLast() {
            if connections[id] != nil { return end(id) }
        }
        if readyIndex == readyCount {
            readyCount = max(
                0, Int(conflux_watch_ready(readiness, &ready, Int32(Self.readyMax), 0)))
            readyIndex = 0
            if readyCount == 0 { return nil }
        }
        while readyIndex < readyCount {
            let item = ready[readyIndex]
            readyIndex += 1
            if item.number == 0 { return .rung }
            let id = RoutingID(number: item.number)
            guard let connection = connections[id] else { continue }
            if item.is_writable != 0, !writeOn(id) { return end(id) }
            guard item.is_readable != 0 else { continue }
            let count = conflux_receive(
                connection.descriptor, piece.baseAddress, connection.turn.bytes)
            if count > 0 {
                return .received(
                    id, UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(piece)[..<count]))
            }
            if count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK) { return end(id) }
        }
        return nil
    }

    private func end(_ id: RoutingID) -> Event {
        if let connection = connections.removeValue(forKey: id) {
            // A child process may have the descriptor, too, so closing it does not end the watch.
            conflux_unwatch(readiness, connection.descriptor)
            closeDescriptor(connection.descriptor)
        }
        return .ended(id)
    }

    /// Notes how many messages the last piece of a connection has completed.
    func took(messages: Int, from id: RoutingID) {
        guard let index = connections.index(forKey: id) else { return }
        connections.values[index].turn.took(messages: messages)
    }

    /// Whether ``next()`` has something to report that the descriptor does not.
    var isReady: Bool { !broken.isEmpty }

    // MARK: Writing

    /// Writes as much of a frame as the connection takes, and queues the rest.
    ///
    /// - Returns: `wouldBlock` if too many frames are queued; `unreachable` if there is no such connection, or if it
    ///   is broken: then ``next()`` reports its end.
    func send(
        _ frame: inout OutgoingFrame, counting queue: OutboundQueue?, to id: RoutingID
    ) -> SendOutcome {
        guard let index = connections.index(forKey: id) else { return .unreachable }
        let descriptor = connections.values[index].descriptor
        let wasClear = connections.values[index].outbound.isClear
        guard connections.values[index].outbound.count < settings.sendQueueMessages else {
            return .wouldBlock
        }
        switch connections.values[index].outbound.send(&frame, counting: queue, to: descriptor) {
        case .written: return .sent
        case .broken: return .unreachable
        case .waits:
            guard !wasClear || watch(descriptor, id, isWriting: true) else {
                broken.append(id)
                return .unreachable
            }
            return .sent
        }
    }

    /// Writes what is queued, as far as the connection takes it. After about one piece, others have their turn.
    ///
    /// - Returns: False if the connection is broken.
    private func writeOn(_ id: RoutingID) -> Bool {
        guard let index = connections.index(forKey: id) else { return true }
        let descriptor = connections.values[index].descriptor
        guard connections.values[index].outbound.write(to: descriptor, atMost: Turn.bytesMax)
        else { return false }
        return !connections.values[index].outbound.isClear
            || watch(descriptor, id, isWriting: false)
    }

    /// Ends a connection. What is queued here in either direction is lost; what the system has
    /// taken is still sent.
    func close(_ id: RoutingID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        conflux_unwatch(readiness, connection.descriptor)
        conflux_end(connection.descriptor, piece.baseAddress, piece.count, Self.drainedBytesMax)
    }

    /// Writes what is queued for all connections, for as long as `linger` allows, and closes everything.
    func close() {
        let until = ContinuousClock.now + settings.linger
        while let last = writeToAll(), case let left = until - .now, left > .zero {
            let milliseconds = min(left.wholeMilliseconds, Self.lingerStepMilliseconds)
            _ = conflux_await_writable(last, milliseconds)
        }
        for id in Array(connections.keys) { close(id) }
    }

    /// - Returns: The descriptor of a connection that still has something queued; nil if none has.
    private func writeToAll() -> Int32? {
        var last: Int32?
        for (id, connection) in connections where !connection.outbound.isClear {
            guard writeOn(id) else {
                close(id)
                continue
            }
            if connections[id]?.outbound.isClear == false { last = connection.descriptor }
        }
        return last
    }

    private static let lingerStepMilliseconds: Int32 = 10
    /// The most bytes that are read and discarded from a connection that ends.
    static let drainedBytesMax = 256 << 10
}
