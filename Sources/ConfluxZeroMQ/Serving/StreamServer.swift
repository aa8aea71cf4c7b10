import CSockets

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Stream sockets of the system that peers connect to. They are read and written without blocking.
///
/// One descriptor (``readiness``) is readable when any of them has something to do. What can't be written at once is
/// queued here, and is written when the connection takes it. This type limits only the number of queued frames; the
/// caller limits their bytes.
///
/// Owned by one thread at a time. *Invariant*: no two connections or listeners that exist at the same time have the
/// same number, and numbers are reused only after all others were used. So an event of a connection that has ended is
/// not taken for another connection's.
final class StreamServer {
    /// What has happened.
    enum Event {
        /// A peer has connected.
        case connected(RoutingID)
        /// A peer has sent these bytes, which are valid until the next call.
        case received(RoutingID, UnsafeRawBufferPointer)
        /// A connection has ended, and was closed.
        case ended(RoutingID)
    }

    fileprivate struct Connection {
        let descriptor: Int32
        var outbound = OutboundFrames()
    }

    /// Readable if there is something to do.
    let readiness: Int32
    private var listeners: [UInt32: Int32] = [:]
    /// The paths of local sockets, and which file each path had. By the time they are closed, a path may belong to
    /// another socket.
    private var places: [(path: String, identity: conflux_identity)] = []
    private var connections: [RoutingID: Connection] = [:]
    private var nextNumber: UInt32 = 1
    /// Descriptors that were reported as ready; those from `readyIndex` on have yet to be handled.
    private var ready = [conflux_ready](repeating: conflux_ready(), count: StreamServer.readyMax)
    private var readyCount = 0
    private var readyIndex = 0
    /// Whether the process has run out of descriptors. *Use*: nothing is accepted until
    /// ``resume()``.
    private var isFull = false
    private let piece: UnsafeMutableRawBufferPointer
    private let settings: SocketSettings

    /// How many bytes are read from one connection before others have their turn.
    private static let pieceBytes = 64 << 10
    private static let readyMax = 64

    init(_ settings: SocketSettings) throws(ZeroMQError) {
        self.settings = settings
        readiness = conflux_watch_open()
        guard readiness >= 0 else { throw .system(errno, "Opening a socket") }
        piece = .allocate(byteCount: Self.pieceBytes, alignment: 16)
    }

    deinit {
        for descriptor in listeners.values { closeDescriptor(descriptor) }
        for connection in connections.values { closeDescriptor(connection.descriptor) }
        closeDescriptor(readiness)
        piece.deallocate()
    }

    // MARK: Listening

    /// Begins to accept connections at an endpoint.
    ///
    /// - Returns: The real endpoint, with the port that was chosen.
    func bind(_ endpoint: Endpoint) throws(ZeroMQError) -> Endpoint {
        let attempt = "Binding to \(endpoint)"
        let descriptor: Int32
        var bound = endpoint
        switch endpoint.transport {
        case .tcp(let host, var port):
            // Names are not looked up here, except `localhost`, which people write.
            let numeric = host == "localhost" ? "127.0.0.1" : host == "*" ? "0.0.0.0" : host
            var name = [CChar](repeating: 0, count: 128)
            descriptor = conflux_listen_tcp(
                numeric, endpoint.isIPv6Literal ? 1 : 0, &port, Int32(settings.backlog), &name,
                name.count)
            guard descriptor >= 0 else { throw .system(errno, attempt) }
            let text = String(
                decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            bound = try Endpoint(host: text, port: port)
        case .ipc(let path):
            descriptor = conflux_listen_local(path, Int32(settings.backlog))
            guard descriptor >= 0 else { throw .system(errno, attempt) }
            places.append((path, conflux_identify(path)))
        }
        let number = takeNumber()
        listeners[number] = descriptor
        try watch(descriptor, number, isNew: true)
        return bound
    }

    private func takeNumber() -> UInt32 {
        defer { nextNumber = nextNumber &+ 1 }
        while nextNumber == 0 || listeners[nextNumber] != nil
            || connections[RoutingID(number: nextNumber)] != nil
        { nextNumber = nextNumber &+ 1 }
        return nextNumber
    }

    private func watch(
        _ descriptor: Int32, _ number: UInt32, isNew: Bool, isWriting: Bool = false
    ) throws(ZeroMQError) {
        guard conflux_watch(readiness, descriptor, number, isNew ? 1 : 0, isWriting ? 1 : 0) == 0
        else { throw .system(errno, "Watching a connection") }
    }

    /// Accepts connections again, if the process had run out of descriptors.
    func resume() throws(ZeroMQError) {
        guard isFull else { return }
        isFull = false
        for (number, descriptor) in listeners { try watch(descriptor, number, isNew: true) }
    }

    // MARK: Events

    /// Handles the next thing that is ready.
    ///
    /// - Returns: What has happened; nil if nothing is ready, or if everything that was ready has been handled once:
    ///   then the descriptor says whether there is more.
    func next() throws(ZeroMQError) -> Event? {
        if readyIndex == readyCount {
            readyCount = max(
                0, Int(conflux_watch_ready(readiness, &ready, Int32(Self.readyMax))))
            readyIndex = 0
            if readyCount == 0 { return nil }
        }
        while readyIndex < readyCount {
            let item = ready[readyIndex]
            readyIndex += 1
            if let listener = listeners[item.number] {
                // One at a time: a peer that connects again and again must not hold up the others.
                if let event = try accept(listener) { return event }
                continue
            }
            let id = RoutingID(number: item.number)
            guard let connection = connections[id] else { continue }
            if item.is_writable != 0, try !writeOn(id) { return end(id) }
            guard item.is_readable != 0 else { continue }
            let count = conflux_receive(connection.descriptor, piece.baseAddress, piece.count)
            if count > 0 {
                return .received(
                    id, UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(piece)[..<count]))
            }
            if count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK) { return end(id) }
        }
        return nil
    }

    private func accept(_ listener: Int32) throws(ZeroMQError) -> Event? {
        guard !isFull else { return nil }
        let descriptor = conflux_accept(listener, settings.keeping)
        guard descriptor >= 0 else {
            if errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS {
                // Otherwise the listener would be ready all the time, and nothing could be done.
                isFull = true
                for descriptor in listeners.values { conflux_unwatch(readiness, descriptor) }
            }
            return nil
        }
        let number = takeNumber()
        do {
            try watch(descriptor, number, isNew: true)
        } catch {
            // The system can't watch another descriptor: only this connection ends.
            closeDescriptor(descriptor)
            return nil
        }
        connections[RoutingID(number: number)] = Connection(descriptor: descriptor)
        return .connected(RoutingID(number: number))
    }

    private func end(_ id: RoutingID) -> Event {
        if let connection = connections.removeValue(forKey: id) {
            // A child process may have the descriptor, too, so closing it does not end the watch.
            conflux_unwatch(readiness, connection.descriptor)
            closeDescriptor(connection.descriptor)
        }
        return .ended(id)
    }

    // MARK: Writing

    /// Writes as much of a frame as the connection takes, and queues the rest.
    ///
    /// - Returns: `wouldBlock` if too many frames are queued; `unreachable` if there is no such connection, or if it
    ///   is broken: then ``next()`` reports its end.
    func send(
        _ frame: inout OutgoingFrame, counting queue: OutboundQueue?, to id: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
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
            if wasClear { try watch(descriptor, id.number, isNew: false, isWriting: true) }
            return .sent
        }
    }

    /// Writes what is queued, as far as the connection takes it. After about one piece, others have their turn.
    ///
    /// - Returns: False if the connection is broken.
    private func writeOn(_ id: RoutingID) throws(ZeroMQError) -> Bool {
        guard let index = connections.index(forKey: id) else { return true }
        let descriptor = connections.values[index].descriptor
        guard connections.values[index].outbound.write(to: descriptor, atMost: Self.pieceBytes)
        else { return false }
        if connections.values[index].outbound.isClear {
            try watch(descriptor, id.number, isNew: false)
        }
        return true
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
        for descriptor in listeners.values { closeDescriptor(descriptor) }
        listeners = [:]
        for (path, identity) in places { conflux_unlink_local(path, identity) }
        places = []
    }

    /// - Returns: The descriptor of a connection that still has something queued; nil if none has.
    private func writeToAll() -> Int32? {
        var last: Int32?
        for (id, connection) in connections where !connection.outbound.isClear {
            guard (try? writeOn(id)) == true else {
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
