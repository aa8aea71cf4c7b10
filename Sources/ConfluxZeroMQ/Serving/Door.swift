import CSockets
import ConfluxVocabulary
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Where the peers of a serving socket connect: a thread of its own accepts them and makes their handshakes. So
/// whatever strangers do, it costs the socket's owner nothing.
///
///     accepted ── handshake, and a subscription if one is awaited ──▶ arrived ──▶ the socket's
///         └─ too long, too many, refused, or no ZMTP ──▶ closed
///
/// With CURVE a peer arrives once it has proved a key that may connect. Without keys a peer of a publisher arrives with
/// its first subscription. The thread is a ``Doorkeeper``.
///
/// Owned by the socket's owner.
final class Door {
    /// A peer whose handshake is complete, except for its admission if it has a key.
    struct Arrival {
        let descriptor: Int32
        let decoder: ZMTPDecoder
        /// The key that the peer has proved to have; nil if connections are not encrypted.
        let key: CurvePublicKey?
        /// What the peer has sent after the handshake.
        let events: [ZMTPDecoder.Event]
    }

    /// What the owner and the thread share.
    final class Hall: Sendable {
        private struct Content {
            /// Listening descriptors, by their numbers.
            var listeners: [UInt32: Int32] = [:]
            /// Peers that the owner has yet to take, in the order in which they arrived.
            var arrivals: ArraySlice<Handover<Arrival>> = []
            var connectionsMax: @Sendable (CurvePublicKey) -> Int? = { _ in .max }
            var isClosing = false
        }

        private let content = Mutex(Content())
        /// How many peers have not arrived yet.
        let strangerCount = Atomic<Int>(0)
        /// Readable while there are arrivals.
        let bell: Int32
        private let bellRope: Int32
        /// Ends the thread's sleep.
        let alarm: Int32
        private let alarmRope: Int32
        /// Watches the alarm, the listeners and the strangers.
        let watch: Int32

        fileprivate init() throws(ZeroMQError) {
            var bell: (Int32, Int32) = (-1, -1)
            var alarm: (Int32, Int32) = (-1, -1)
            watch = conflux_watch_open()
            guard watch >= 0, conflux_waker_open(&bell.0, &bell.1) == 0,
                conflux_waker_open(&alarm.0, &alarm.1) == 0,
                conflux_watch(watch, alarm.0, 0, 1, 0) == 0
            else {
                let number = errno
                for descriptor in Set([watch, bell.0, bell.1, alarm.0, alarm.1])
                where descriptor >= 0 {
                    closeDescriptor(descriptor)
                }
                throw .system(number, "Opening a socket")
            }
            (self.bell, bellRope) = bell
            (self.alarm, alarmRope) = alarm
        }

        deinit {
            closeDescriptor(watch)
            conflux_waker_close(bell, bellRope)
            conflux_waker_close(alarm, alarmRope)
        }

        var isClosing: Bool { content.withLock { $0.isClosing } }
        var listeners: [UInt32: Int32] { content.withLock { $0.listeners } }
        var arrivalCount: Int { content.withLock { $0.arrivals.count } }

        /// How many connections the peers with a key may have; nil if the key may not connect.
        func connectionsMax(_ key: CurvePublicKey) -> Int? {
            content.withLock { $0.connectionsMax }(key)
        }

        fileprivate func set(connectionsMax: @escaping @Sendable (CurvePublicKey) -> Int?) {
            content.withLock { $0.connectionsMax = connectionsMax }
        }

        fileprivate func add(listener: Int32) -> UInt32 {
            content.withLock { content in
                let number = UInt32(content.listeners.count + 1)
                content.listeners[number] = listener
                return number
            }
        }

        /// Hands a peer over to the owner.
        func add(_ arrival: Arrival) {
            let arrival = Handover(arrival)
            content.withLock { content in
                content.arrivals.append(arrival)
                if content.arrivals.count == 1 { conflux_waker_signal(bellRope) }
            }
        }

        fileprivate func takeArrival() -> Arrival? {
            content.withLock { content in
                let first = content.arrivals.popFirst()
                if content.arrivals.isEmpty {
                    content.arrivals = []
                    conflux_waker_drain(bell)
                }
                return first?.value
            }
        }

        /// Asks the thread to end.
        ///
        /// - Returns: The listeners.
        fileprivate func close() -> [Int32] {
            defer { conflux_waker_signal(alarmRope) }
            return content.withLock { content in
                content.isClosing = true
                defer { content.listeners = [:] }
                return Array(content.listeners.values)
            }
        }
    }

    private let type: ZMTP.SocketType
    private let settings: SocketSettings
    private let hall: Hall
    private var thread: NamedThread?
    /// The paths of local sockets, and which file each path had. By the time they are closed, a path may belong to
    /// another socket.
    private var places: [(path: String, identity: conflux_identity)] = []

    init(_ type: ZMTP.SocketType, _ settings: SocketSettings) throws(ZeroMQError) {
        self.type = type
        self.settings = settings
        hall = try Hall()
    }

    deinit { close() }

    /// Readable while there are arrivals.
    var bell: Int32 { hall.bell }

    /// How many peers are at the door, or have arrived and were not taken.
    var count: Int { hall.strangerCount.load(ordering: .relaxed) + hall.arrivalCount }

    /// Sets how many connections the peers with a key may have; nil if the key may not connect.
    func setConnectionsMax(_ most: @escaping @Sendable (CurvePublicKey) -> Int?) {
        hall.set(connectionsMax: most)
    }

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
            // Digits, and the name of an interface at most: the endpoint accepts only ASCII.
            bound = try Endpoint(host: String(shownCString: name), port: port)
        case .ipc(let path):
            descriptor = conflux_listen_local(path, Int32(settings.backlog))
            guard descriptor >= 0 else { throw .system(errno, attempt, at: path) }
            places.append((path, conflux_identify(path)))
        }
        try accept(at: descriptor)
        return bound
    }

    /// Accepts the connections of a listening descriptor from now on.
    private func accept(at listener: Int32) throws(ZeroMQError) {
        let number = hall.add(listener: listener)
        guard conflux_watch(hall.watch, listener, number, 1, 0) == 0 else {
            throw .system(errno, "Watching a socket")
        }
        guard thread == nil else { return }
        let (type, settings, hall) = (type, settings, hall)
        // Those who have proved their identity go first.
        thread = try NamedThread("conflux-door", stackBytes: 1 << 20, priority: .low) {
            Doorkeeper(type, settings, hall).run()
        }
    }

    /// Takes the peer that arrived first, if there is one. The caller closes its descriptor.
    func takeArrival() -> Arrival? { hall.takeArrival() }

    /// Accepts nothing more, ends the connections of all strangers and of those that nobody has taken, and waits until
    /// that is done. A further call does nothing.
    func close() {
        let listeners = hall.close()
        thread?.join()
        thread = nil
        for listener in listeners { closeDescriptor(listener) }
        while let arrival = takeArrival() { closeDescriptor(arrival.descriptor) }
        for (path, identity) in places { conflux_unlink_local(path, identity) }
        places = []
    }
}
