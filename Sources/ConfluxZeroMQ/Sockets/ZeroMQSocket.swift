import CZeroMQ
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What all sockets of libzmq's have: opening, binding, connecting, closing.
///
/// One thread at a time owns a socket and everything it offers. It may be made by one thread and
/// handed to another before that one uses it. No call blocks. A closed socket throws `closed`;
/// closing again, and releasing without closing, are safe.
public class ZeroMQSocket: PolledSocket {
    /// The context that the socket was opened in.
    public let context: ZeroMQContext

    /// nil once closed.
    private(set) var raw: UnsafeMutableRawPointer?

    private let incoming = UnsafeMutablePointer<zmq_msg_t>.allocate(capacity: 1)
    private let outgoing = UnsafeMutablePointer<zmq_msg_t>.allocate(capacity: 1)
    private(set) var monitor: SocketMonitor?

    /// What a received message leaves allocated until the next one.
    private static let keptBytesMax = 64 << 10

    init(_ context: ZeroMQContext, type: Int32, settings: SocketSettings) throws(ZeroMQError) {
        self.context = context
        super.init()
        zmq_msg_init(incoming)
        zmq_msg_init(outgoing)
        try settings.validate()
        raw = try context.openSocket(type: type)
        for (option, value) in settings.options { try set(option, value) }
        try set(ZMQ_MAXMSGSIZE, Int64(settings.messageBytesMax))
        if case .client(let key, let server) = settings.security {
            try server.bytes[...].withRawBytes { bytes throws(ZeroMQError) in
                try set(ZMQ_CURVE_SERVERKEY, bytes)
            }
            try key.publicKey.bytes[...].withRawBytes { bytes throws(ZeroMQError) in
                try set(ZMQ_CURVE_PUBLICKEY, bytes)
            }
            try set(
                ZMQ_CURVE_SECRETKEY,
                UnsafeRawBufferPointer(start: key.secret.pointer, count: CurvePublicKey.byteCount))
        }
    }

    deinit {
        close()
        zmq_msg_close(incoming)
        zmq_msg_close(outgoing)
        incoming.deallocate()
        outgoing.deallocate()
    }

    /// Whether `close()` was called.
    public override var isClosed: Bool { raw == nil }

    /// Whether it was used since it was last found to be ready for nothing. libzmq's descriptor tells of what
    /// happens from then on, and not again of what any call has seen.
    private(set) final var wasUsed = true

    override var mayBeReady: Bool { wasUsed }

    override func descriptor() throws(ZeroMQError) -> Int32 { try option(ZMQ_FD) }

    override func ready(for events: Int16, _ signals: Int16) throws(ZeroMQError) -> Int16 {
        let ready: Int32 = try option(ZMQ_EVENTS)
        let found =
            (ready & ZMQ_POLLIN != 0 ? Int16(POLLIN) : 0)
            | (ready & ZMQ_POLLOUT != 0 ? Int16(POLLOUT) : 0)
        wasUsed = found & events != 0
        return found & events
    }

    /// Whether something waits to be received.
    public final var isReadable: Bool {
        get throws(ZeroMQError) { try option(ZMQ_EVENTS) & ZMQ_POLLIN != 0 }
    }

    private func option(_ name: Int32) throws(ZeroMQError) -> Int32 {
        var value: Int32 = 0
        var length = MemoryLayout<Int32>.size
        guard zmq_getsockopt(try open(), name, &value, &length) == 0 else {
            throw .system(zmq_errno(), "Asking a socket for what it has")
        }
        return value
    }

    /// Closes the socket; what it still had to send is sent in the background for as long as its
    /// linger setting says. Doing it again does nothing.
    public func close() {
        guard let raw else { return }
        monitor?.close()
        monitor = nil
        self.raw = nil
        context.closeSocket(raw)
    }

    /// Begins to accept connections at an endpoint.
    ///
    /// - Parameter endpoint: Where; with port 0 the system chooses a port. `localhost` is
    ///   127.0.0.1; other hosts are `*` or an IP address of this machine.
    /// - Returns: The real endpoint, with the port that was chosen.
    /// - Throws: `addressInUse`, `addressNotAvailable`, `permissionDenied` and others of the
    ///   system, naming the endpoint.
    @discardableResult
    public func bind(_ endpoint: Endpoint) throws(ZeroMQError) -> Endpoint {
        let raw = try open()
        if endpoint.isIPv6Literal { try set(ZMQ_IPV6, Int32(1)) }
        while zmq_bind(raw, endpoint.bindText) != 0 {
            let number = zmq_errno()
            if number != EINTR { throw .system(number, "Binding to \(endpoint)") }
        }
        var text = [CChar](repeating: 0, count: 512)
        var length = text.count
        guard zmq_getsockopt(raw, ZMQ_LAST_ENDPOINT, &text, &length) == 0 else {
            throw .system(zmq_errno(), "Asking for the address of \(endpoint)")
        }
        return try Endpoint(
            String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
    }

    /// Connects in the background, and again whenever the connection breaks.
    ///
    /// - Parameter endpoint: Whereto; it need not be there yet.
    /// - Throws: `invalidEndpoint` for `*` and port 0; errors of the system.
    public func connect(_ endpoint: Endpoint) throws(ZeroMQError) {
        let raw = try open()
        guard !endpoint.isWildcard else {
            throw ZeroMQError(
                .invalidEndpoint,
                "\(endpoint) cannot be connected to: give the host and port of the other side.")
        }
        if endpoint.isIPv6Literal { try set(ZMQ_IPV6, Int32(1)) }
        while zmq_connect(raw, endpoint.description) != 0 {
            let number = zmq_errno()
            if number != EINTR { throw .system(number, "Connecting to \(endpoint)") }
        }
    }

    /// Connects where libzmq has given up, since the other side refused the handshake.
    ///
    /// - Parameter endpoint: Whereto this socket was connected.
    /// - Throws: Errors of the system.
    public func connectAgain(_ endpoint: Endpoint) throws(ZeroMQError) {
        let raw = try open()
        while zmq_disconnect(raw, endpoint.description) != 0 {
            let number = zmq_errno()
            // It may know nothing of it any more.
            if number == ENOENT { break }
            if number != EINTR { throw .system(number, "Disconnecting from \(endpoint)") }
        }
        try connect(endpoint)
    }

    /// Begins to report what happens to the socket's connections. Repeated calls give the same
    /// monitor until it is closed.
    ///
    /// - Throws: `tooManyOpen`, `closed`.
    /// - Returns: A monitor, owned by the thread that owns this socket; it closes with it.
    public func openMonitor() throws(ZeroMQError) -> SocketMonitor {
        _ = try open()
        if let monitor, !monitor.isClosed { return monitor }
        let monitor = try SocketMonitor(watching: self)
        self.monitor = monitor
        return monitor
    }

    func open() throws(ZeroMQError) -> UnsafeMutableRawPointer {
        guard let raw else { throw .socketClosed }
        wasUsed = true
        return raw
    }

    func set<Value: BitwiseCopyable>(_ option: Int32, _ value: Value) throws(ZeroMQError) {
        var value = value
        let raw = try open()
        guard zmq_setsockopt(raw, option, &value, MemoryLayout<Value>.size) == 0 else {
            throw .system(zmq_errno(), "Setting socket option \(option)")
        }
    }

    func set(_ option: Int32, _ bytes: UnsafeRawBufferPointer) throws(ZeroMQError) {
        let raw = try open()
        guard zmq_setsockopt(raw, option, bytes.baseAddress, bytes.count) == 0 else {
            throw .system(zmq_errno(), "Setting socket option \(option)")
        }
    }

    // MARK: Frames

    /// Receives the next frame into `frame`.
    ///
    /// - Returns: Whether there was one.
    func receiveFrame() throws(ZeroMQError) -> Bool {
        let raw = try open()
        while true {
            if zmq_msg_recv(incoming, raw, ZMQ_DONTWAIT) >= 0 { return true }
            switch zmq_errno() {
            case EAGAIN: return false
            case EINTR: continue
            case let number: throw .system(number, "Receiving")
            }
        }
    }

    /// The frame received last, valid until the next call.
    var frame: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: zmq_msg_data(incoming), count: zmq_msg_size(incoming))
    }

    /// Whether more frames of the same message follow.
    var hasMoreFrames: Bool { zmq_msg_more(incoming) != 0 }

    /// The frame received last, in one allocation of its own.
    func takeFrame() -> Bytes {
        let source = frame
        let bytes = [UInt8](unsafeUninitializedCapacity: source.count) { buffer, count in
            UnsafeMutableRawBufferPointer(buffer).copyMemory(from: source)
            count = source.count
        }
        if source.count > Self.keptBytesMax {
            zmq_msg_close(incoming)
            zmq_msg_init(incoming)
        }
        return bytes[...]
    }

    /// Throws away what is left of a message. libzmq hands over whole messages, so that it ends.
    ///
    /// - Returns: How many frames that were.
    func skipMessage() throws(ZeroMQError) -> Int {
        var count = 0
        while hasMoreFrames {
            guard try receiveFrame() else { break }
            count += 1
        }
        return count
    }

    /// Receives the next message that is one frame; others are counted and thrown away.
    ///
    /// - Returns: nil when nothing waits, and after a run of malformed messages: the socket then
    ///   stays readable.
    func receiveSingleFrame() throws(ZeroMQError) -> Bytes? {
        for _ in 0..<64 {
            guard try receiveFrame() else { return nil }
            if !hasMoreFrames { return takeFrame() }
            _ = try skipMessage()
            malformedCount += 1
        }
        return nil
    }

    /// Makes room for the one frame that `sendFrame` or `discardFrame` must follow.
    func prepareFrame(_ byteCount: Int) throws(ZeroMQError) -> UnsafeMutableRawBufferPointer {
        guard zmq_msg_init_size(outgoing, byteCount) == 0 else {
            let number = zmq_errno()
            zmq_msg_init(outgoing)
            throw .system(number, "Sending \(byteCount) bytes")
        }
        return UnsafeMutableRawBufferPointer(start: zmq_msg_data(outgoing), count: byteCount)
    }

    func discardFrame() {
        zmq_msg_close(outgoing)
        zmq_msg_init(outgoing)
    }

    func sendFrame() throws(ZeroMQError) -> SendOutcome {
        let raw: UnsafeMutableRawPointer
        do { raw = try open() } catch {
            discardFrame()
            throw error
        }
        while true {
            if zmq_msg_send(outgoing, raw, ZMQ_DONTWAIT) >= 0 { return .sent }
            switch zmq_errno() {
            case EINTR: continue
            case EAGAIN:
                discardFrame()
                return .wouldBlock
            case EHOSTUNREACH:
                discardFrame()
                return .unreachable
            case let number:
                discardFrame()
                throw .system(number, "Sending")
            }
        }
    }
}

/// What became of a message that was to be sent.
public enum SendOutcome: Sendable, Hashable {
    /// It is in the queue. It arrives unless the connection breaks.
    case sent
    /// The queue for that peer is full, or no connection stands. Nothing was queued; once the
    /// poller says that the socket is writable it is worth another attempt.
    case wouldBlock
    /// A router has no connection with this routing id; there will be none again.
    case unreachable
}
