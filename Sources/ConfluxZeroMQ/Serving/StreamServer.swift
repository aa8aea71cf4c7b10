import CSockets

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Stream sockets of the system that peers connect to, and that are read and written without waiting.
///
/// One descriptor (``readiness``) is readable when any of them has something to do. What can't be written at
/// once waits here, and is written when the connection takes it; how much may wait is the caller's matter,
/// but for the number of frames.
///
/// Owned by one thread at a time. *Invariant*: a number names one connection for ever, so that what was
/// ready when its connection ended is never taken for another's.
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

    /// Readable when something is to be done.
    let readiness: Int32
    private var listeners: [UInt32: Int32] = [:]
    /// Of local sockets: what they are, since their paths may be another's by the time that they end.
    private var places: [(path: String, identity: conflux_identity)] = []
    private var connections: [RoutingID: Connection] = [:]
    private var nextNumber: UInt32 = 1
    /// What is ready and was not looked at.
    private var ready = [conflux_ready](repeating: conflux_ready(), count: StreamServer.readyMax)
    private var readyCount = 0
    private var readyIndex = 0
    /// Whether descriptors have run out. *Use*: nothing is accepted before ``resume()``.
    private var isFull = false
    private let piece: UnsafeMutableRawBufferPointer
    private let settings: SocketSettings

    /// How many bytes are taken of one connection before others have their turn.
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
            // Nothing looks up names here, and `localhost` is the one that people write.
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

    /// Accepts again, where descriptors had run out.
    func resume() throws(ZeroMQError) {
        guard isFull else { return }
        isFull = false
        for (number, descriptor) in listeners { try watch(descriptor, number, isNew: true) }
    }

    // MARK: Events

    /// Does the next thing that is to be done.
    ///
    /// - Returns: What has happened; nil when nothing waits, or all that did was done once: then the
    ///   descriptor says whether there is more.
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
                // One at a time: whoever connects again and again keeps nobody waiting.
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
                // It would be ready all the time, and nothing could be done.
                isFull = true
                for descriptor in listeners.values { conflux_unwatch(readiness, descriptor) }
            }
            return nil
        }
        let number = takeNumber()
        do {
            try watch(descriptor, number, isNew: true)
        } catch {
            // The system watches no more: this connection goes, and no other.
            closeDescriptor(descriptor)
            return nil
        }
        connections[RoutingID(number: number)] = Connection(descriptor: descriptor)
        return .connected(RoutingID(number: number))
    }

    private func end(_ id: RoutingID) -> Event {
        if let connection = connections.removeValue(forKey: id) {
            // A process that was started meanwhile may have the descriptor, too.
            conflux_unwatch(readiness, connection.descriptor)
            closeDescriptor(connection.descriptor)
        }
        return .ended(id)
    }

    // MARK: Writing

    /// Writes a frame, or as much of it as the connection takes; the rest waits.
    ///
    /// - Returns: `wouldBlock` where too many frames wait, `unreachable` where there is no such connection, or
    ///   it is broken: its end is told by ``next()``.
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

    /// Writes what waits, as far as the connection takes it, or a piece of it: others have their turn then.
    ///
    /// - Returns: Whether the connection is whole.
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

    /// Ends a connection. What waits in both directions is lost, but what the system has.
    func close(_ id: RoutingID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        conflux_unwatch(readiness, connection.descriptor)
        conflux_end(connection.descriptor, piece.baseAddress, piece.count, Self.drainedBytesMax)
    }

    /// Ends everything; what waits to be written is written for as long as `linger` says, to all at once.
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

    /// - Returns: The descriptor of one that something still waits for; nil if nothing does.
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
    /// The most bytes that are thrown away of a connection that ends.
    static let drainedBytesMax = 256 << 10
}
