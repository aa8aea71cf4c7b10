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
/// With CURVE a peer arrives once it has proved its key. Without keys a peer of a publisher arrives with its first
/// subscription.
///
/// The thread has a low priority. It accepts whatever there is before it computes, and computes for a bounded time
/// before it accepts again. See ``StrangerTable`` for who is served first.
///
/// *Invariant*: strangers and arrivals together are at most ``SocketSettings/handshakesMax``.
// Sendable: `shared` has a lock. Everything else is the thread's alone.
final class Door: @unchecked Sendable {
    /// A peer whose handshake is complete, except for its admission if it has a key.
    struct Arrival {
        let descriptor: Int32
        let decoder: ZMTPDecoder
        /// The key that the peer has proved to have; nil if connections are not encrypted.
        let key: CurvePublicKey?
        /// What the peer has sent after the handshake.
        let events: [ZMTPDecoder.Event]
    }

    private struct Stranger {
        let descriptor: Int32
        var decoder: ZMTPDecoder
        /// Whether it was sent WELCOME.
        var isWelcome = false
        /// What it has sent and waits to be decoded.
        var piece: [UInt8] = []
        /// What it has sent after the handshake.
        var events: [ZMTPDecoder.Event] = []
    }

    private struct Shared {
        /// Listening descriptors, by their numbers.
        var listeners: [UInt32: Int32] = [:]
        /// Peers that the socket has yet to take, in the order in which they arrived.
        var arrivals: ArraySlice<Handover<Arrival>> = []
        /// How many connections the peers with a key may have.
        var connectionsMax: @Sendable (CurvePublicKey) -> Int? = { _ in .max }
        var isClosing = false
    }

    /// Readable while there are arrivals.
    let bell: Int32
    private let bellRope: Int32
    /// How many peers have not arrived yet.
    private let strangerCount = Atomic<Int>(0)
    private let shared = Mutex(Shared())
    private let thread = Mutex<NamedThread?>(nil)

    private let watch: Int32
    /// Ends the thread's sleep.
    private let alarm: Int32
    private let alarmRope: Int32
    private let settings: SocketSettings
    private let type: ZMTP.SocketType
    private let key: CurveKeyPair?

    private var strangers: [UInt32: Stranger] = [:]
    private var table = StrangerTable()
    private var lastNumber = Door.listenersMax
    /// Whether the process has run out of descriptors. *Use*: nothing is accepted until the next review.
    private var isFull = false
    private var reviewedAt = Duration.zero
    /// The paths of local sockets, and which file each path had. By the time they are closed, a path may belong to
    /// another socket. *Use*: the owner's alone.
    private var places: [(path: String, identity: conflux_identity)] = []
    private var ready = [conflux_ready](repeating: conflux_ready(), count: Door.readyMax)
    private let piece: UnsafeMutableRawBufferPointer

    private static let readyMax = 64
    /// Numbers up to this are listeners'; 0 is the alarm's.
    private static let listenersMax: UInt32 = 1 << 16
    /// How many connections are accepted before other things have their turn.
    private static let acceptedMax = 256
    /// How long it computes before it accepts again.
    static let computingMax = Duration.milliseconds(1)
    /// The most bytes that are read of a stranger at a time. No command of a handshake is longer.
    private static let pieceBytes = 4 << 10
    /// How often strangers that take too long are looked for.
    private static let reviewInterval = Duration.seconds(1)

    init(_ type: ZMTP.SocketType, _ settings: SocketSettings) throws(ZeroMQError) {
        self.type = type
        self.settings = settings
        key = settings.security.serverKey
        var bell: (Int32, Int32) = (-1, -1)
        var alarm: (Int32, Int32) = (-1, -1)
        watch = conflux_watch_open()
        guard watch >= 0, conflux_waker_open(&bell.0, &bell.1) == 0,
            conflux_waker_open(&alarm.0, &alarm.1) == 0,
            conflux_watch(watch, alarm.0, 0, 1, 0) == 0
        else {
            let number = errno
            for descriptor in [watch, bell.0, bell.1, alarm.0, alarm.1] where descriptor >= 0 {
                closeDescriptor(descriptor)
            }
            throw .system(number, "Opening a socket")
        }
        (self.bell, bellRope) = bell
        (self.alarm, alarmRope) = alarm
        piece = .allocate(byteCount: Self.pieceBytes, alignment: 16)
    }

    deinit {
        // `close()` was called: the socket calls it when it is freed.
        closeDescriptor(watch)
        conflux_waker_close(bell, bellRope)
        conflux_waker_close(alarm, alarmRope)
        piece.deallocate()
    }

    // MARK: The owner

    /// How many peers wait at the door, or have arrived and were not taken.
    var count: Int { strangerCount.load(ordering: .relaxed) + shared.withLock { $0.arrivals.count } }

    /// Sets how many connections the peers with a key may have; nil if the key may not connect.
    func setConnectionsMax(_ most: @escaping @Sendable (CurvePublicKey) -> Int?) {
        shared.withLock { $0.connectionsMax = most }
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
            guard descriptor >= 0 else { throw .system(errno, attempt) }
            places.append((path, conflux_identify(path)))
        }
        try open(descriptor)
        return bound
    }

    /// Accepts the connections of a listening descriptor from now on.
    private func open(_ listener: Int32) throws(ZeroMQError) {
        let number = shared.withLock { shared in
            let number = UInt32(shared.listeners.count + 1)
            shared.listeners[number] = listener
            return number
        }
        guard conflux_watch(watch, listener, number, 1, 0) == 0 else {
            throw .system(errno, "Watching a socket")
        }
        try thread.withLock { thread throws(ZeroMQError) in
            guard thread == nil else { return }
            thread = try NamedThread("conflux-door", stackBytes: 1 << 20, priority: .low) {
                self.run()
            }
        }
    }

    /// Takes the peer that arrived first, if there is one. The caller closes its descriptor.
    func takeArrival() -> Arrival? {
        shared.withLock { shared in
            let first = shared.arrivals.popFirst()
            if shared.arrivals.isEmpty {
                shared.arrivals = []
                conflux_waker_drain(bell)
            }
            return first?.value
        }
    }

    /// Accepts nothing more, ends the connections of all strangers and of those that nobody has taken, and waits until
    /// that is done. A further call does nothing.
    func close() {
        let listeners = shared.withLock { shared in
            shared.isClosing = true
            defer { shared.listeners = [:] }
            return shared.listeners.values.map { $0 }
        }
        conflux_waker_signal(alarmRope)
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
        for listener in listeners { closeDescriptor(listener) }
        while let arrival = takeArrival() { closeDescriptor(arrival.descriptor) }
        for (path, identity) in places { conflux_unlink_local(path, identity) }
        places = []
    }

    // MARK: The thread

    private func run() {
        while !shared.withLock({ $0.isClosing }) {
            let pause = table.hasWaiting ? 0 : Self.reviewInterval.wholeMilliseconds
            let count = max(
                0, Int(conflux_watch_ready(watch, &ready, Int32(Self.readyMax), pause)))
            let now = Moment.now.monotonic
            for item in ready[..<count] {
                switch item.number {
                case 0: conflux_waker_drain(alarm)
                case ...Self.listenersMax: accept(item.number, at: now)
                default: read(item.number)
                }
            }
            serve(until: now + Self.computingMax)
            review(at: now)
            strangerCount.store(strangers.count, ordering: .relaxed)
        }
        for number in Array(strangers.keys) { end(number) }
        strangerCount.store(0, ordering: .relaxed)
    }

    private func review(at now: Duration) {
        guard now - reviewedAt >= Self.reviewInterval else { return }
        reviewedAt = now
        for number in table.overdue(at: now, after: settings.handshakeInterval) { end(number) }
        guard isFull else { return }
        isFull = false
        for (number, listener) in shared.withLock({ $0.listeners })
        where conflux_watch(watch, listener, number, 1, 0) != 0 {
            isFull = true
        }
    }

    private func accept(_ listenerNumber: UInt32, at now: Duration) {
        guard !isFull, let listener = shared.withLock({ $0.listeners[listenerNumber] }) else {
            return
        }
        for _ in 0..<Self.acceptedMax {
            var origin = conflux_origin()
            let descriptor = conflux_accept(listener, &origin)
            guard descriptor >= 0 else {
                if errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS {
                    // Otherwise the listener would be ready all the time, and nothing could be done.
                    isFull = true
                    for descriptor in shared.withLock({ $0.listeners }).values {
                        conflux_unwatch(watch, descriptor)
                    }
                }
                return
            }
            let number = takeNumber()
            // If the system can't watch another descriptor, only this connection ends.
            guard conflux_watch_once(watch, descriptor, number, 1) == 0 else {
                closeDescriptor(descriptor)
                continue
            }
            strangers[number] = Stranger(
                descriptor: descriptor,
                decoder: ZMTPDecoder(
                    type, messageBytesMax: settings.messageBytesMax,
                    curve: key.map { CurveSession($0) }))
            table.add(
                number, from: .init(family: origin.family, network: origin.network), at: now)
            let waiting = shared.withLock { $0.arrivals.count }
            while strangers.count + waiting > settings.handshakesMax, let surplus = table.surplus {
                end(surplus)
            }
            say(ZMTP.greeting(key == nil ? .null : .curve), to: number)
        }
    }

    private func takeNumber() -> UInt32 {
        repeat {
            lastNumber = lastNumber == .max ? Self.listenersMax + 1 : lastNumber + 1
        } while strangers[lastNumber] != nil
        return lastNumber
    }

    /// Reads what a stranger has sent. If it needs no arithmetic, it is decoded at once.
    private func read(_ number: UInt32) {
        guard let stranger = strangers[number] else { return }
        let count = conflux_receive(stranger.descriptor, piece.baseAddress, piece.count)
        guard count > 0 else {
            let mustWait = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)
            if !mustWait || !watchOn(number) { end(number) }
            return
        }
        let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(piece)[..<count])
        if key == nil || !stranger.decoder.isGreeted && count <= ZMTP.greetingBytes {
            decode(bytes, from: number)
        } else {
            strangers[number]?.piece = Array(bytes)
            table.wait(number, isFirst: stranger.isWelcome)
        }
    }

    /// Decodes what strangers have sent, for a while.
    private func serve(until end: Duration) {
        while let number = table.next() {
            let piece = strangers[number]?.piece ?? []
            strangers[number]?.piece = []
            piece.withUnsafeBytes { decode($0, from: number) }
            guard Moment.now.monotonic < end else { return }
        }
    }

    private func decode(_ bytes: UnsafeRawBufferPointer, from number: UInt32) {
        var events: [ZMTPDecoder.Event] = []
        do throws(ZMTPFault) {
            try strangers[number]?.decoder.decode(bytes, into: &events)
        } catch {
            if let says = error.says { say(says, to: number) }
            end(number)
            return
        }
        for event in events {
            switch event {
            case .answer(let bytes):
                strangers[number]?.isWelcome = key != nil
                say(bytes, to: number)
            case .identified(let key):
                arrive(number, with: key)
                return
            case .message, .malformed, .ping, .subscription: strangers[number]?.events.append(event)
            }
        }
        guard let stranger = strangers[number] else { return }
        let isExpected =
            !type.awaitsSubscription
            || stranger.events.contains {
                switch $0 {
                case .message, .subscription: true
                default: false
                }
            }
        if stranger.decoder.isReady, isExpected {
            arrive(number, with: nil)
        } else if !watchOn(number) {
            end(number)
        }
    }

    private func watchOn(_ number: UInt32) -> Bool {
        guard let stranger = strangers[number] else { return true }
        return conflux_watch_once(watch, stranger.descriptor, number, 0) == 0
    }

    /// Hands a peer over to the socket, unless its key may not connect.
    private func arrive(_ number: UInt32, with key: CurvePublicKey?) {
        guard let stranger = strangers[number] else { return }
        if let key {
            let most = shared.withLock { $0.connectionsMax }(key)
            guard let most, most > 0 else {
                say(ZMTP.error(most == nil ? ZMTP.refusedStatus : ZMTP.fullStatus), to: number)
                end(number)
                return
            }
        }
        guard conflux_keep(stranger.descriptor, settings.keeping) == 0 else {
            end(number)
            return
        }
        conflux_unwatch(watch, stranger.descriptor)
        let arrival = Handover(
            Arrival(
                descriptor: stranger.descriptor, decoder: stranger.decoder, key: key,
                events: stranger.events))
        strangers[number] = nil
        table.remove(number)
        shared.withLock { shared in
            shared.arrivals.append(arrival)
            if shared.arrivals.count == 1 { conflux_waker_signal(bellRope) }
        }
    }

    /// Sends bytes of the handshake. The system has room for them, unless the connection is broken.
    private func say(_ bytes: [UInt8], to number: UInt32) {
        guard let descriptor = strangers[number]?.descriptor else { return }
        if conflux_send(descriptor, bytes, bytes.count, nil, 0) != bytes.count { end(number) }
    }

    private func end(_ number: UInt32) {
        guard let stranger = strangers.removeValue(forKey: number) else { return }
        table.remove(number)
        conflux_end(stranger.descriptor, piece.baseAddress, piece.count, piece.count)
    }
}
