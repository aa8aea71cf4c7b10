import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The side that peers connect to: it has sockets of the system's own, and speaks ZMTP itself, so that no
/// peer can make it hold more than is stated, or end the process.
///
/// libzmq's own ROUTER and XPUB can't serve peers that nobody trusts: a peer that fills its queue,
/// sends pings and resets its connection makes libzmq abort; a message of many frames, and the
/// subscriptions of one peer, are kept without a bound.
///
/// What is held of frames under way, and of what goes out, is bounded in bytes for all connections
/// together. It must be read all the time: see ``review(at:)``. No call blocks, but closing while something
/// waits to be sent.
public class ServingSocket: PolledSocket {
    /// nil once closed.
    private var server: StreamServer?
    private var table: ConnectionTable
    private var events: [ZMTPDecoder.Event] = []
    /// When the last review was.
    private var now: Duration
    /// How many connections the peers with a key may have; nil if the key may not connect. Asked once
    /// for each connection, where connections are encrypted; see ``SocketSettings/security``.
    public var connectionsMax: (CurvePublicKey) -> Int? = { _ in .max }

    /// How often connections are looked at that may have been silent for too long.
    private static let reviewInterval = Duration.seconds(1)

    init(
        as type: ZMTP.SocketType, settings: SocketSettings,
        silenceMax: Duration?, outboundBytesMax: OutboundQueue.Limits
    ) throws(ZeroMQError) {
        try settings.validate()
        now = Moment.now.monotonic
        table = ConnectionTable(
            limits: ConnectionTable.Limits(
                type: type, key: settings.security.serverKey,
                connectionsMax: settings.connectionsMax, handshakesMax: settings.handshakesMax,
                messageBytesMax: settings.messageBytesMax,
                heldBytesMax: max(settings.heldBytesMax, 2 * settings.messageBytesMax),
                handshakeMax: settings.handshakeInterval, silenceMax: silenceMax,
                outboundBytesMax: outboundBytesMax))
        server = try StreamServer(settings)
        super.init()
    }

    /// Whether `close()` was called.
    public final override var isClosed: Bool { server == nil }

    override var descriptor: Int32 { server?.readiness ?? -1 }

    override var isReady: Bool { hasTakenInput }

    /// Whether something was taken from the system and waits to be received.
    var hasTakenInput: Bool { false }

    final func open() throws(ZeroMQError) -> StreamServer {
        guard let server else { throw .socketClosed }
        return server
    }

    /// Begins to accept connections at an endpoint.
    ///
    /// - Parameter endpoint: Where; with port 0 the system chooses a port. `localhost` is
    ///   127.0.0.1; other hosts are `*` or an IP address of this machine.
    /// - Returns: The real endpoint, with the port that was chosen.
    /// - Throws: `addressInUse`, `addressNotAvailable`, `permissionDenied` and others of the
    ///   system, naming the endpoint.
    @discardableResult
    public final func bind(_ endpoint: Endpoint) throws(ZeroMQError) -> Endpoint {
        try open().bind(endpoint)
    }

    /// Ends all connections; what still waits to be sent is sent before, for as long as the linger
    /// setting says. Repeated calls do nothing.
    public final func close() {
        server?.close()
        server = nil
    }

    /// Ends connections that have been silent, or have not said who they are, for too long. Call it now and then, and at least
    /// whenever the poller has waited.
    ///
    /// - Parameter now: The time, monotonic.
    /// - Throws: `closed`.
    public final func review(at now: Duration) throws(ZeroMQError) {
        guard now - self.now >= Self.reviewInterval else { return }
        self.now = now
        try open().resume()
        for id in table.overdue(at: now) { try end(id) }
    }

    /// How full is what all peers share.
    public final var levels: ServingLevels {
        ServingLevels(
            connections: (table.establishedCount, table.limits.connectionsMax),
            handshakes: (table.handshakeCount, table.limits.handshakesMax),
            queueBytes: (table.budget.heldBytes, table.budget.bytesMax))
    }

    /// The key that a peer proved to have; nil if connections are not encrypted.
    public final func key(of id: RoutingID) -> CurvePublicKey? { table.key(of: id) }

    /// Ends the connections of peers with some of the keys.
    ///
    /// What waits to be sent to a connection that ends at once may be lost.
    ///
    /// - Parameters:
    ///   - delay: How long they are served until then; ``review(at:)`` ends them. nil: they end at once.
    ///   - isMeant: Whether those of a key.
    /// - Throws: `closed`.
    public final func end(
        after delay: Duration? = nil, connectionsOf isMeant: (CurvePublicKey) -> Bool
    ) throws(ZeroMQError) {
        for id in table.connections(of: isMeant) {
            if let delay {
                table.end(id, at: Moment.now.monotonic + delay)
            } else {
                try end(id)
            }
        }
    }

    // MARK: For the sockets that are made of this one

    /// Takes the next piece of what peers sent.
    ///
    /// - Returns: Whether there was one.
    final func receivePiece() throws(ZeroMQError) -> Bool {
        switch try open().next() {
        case nil: return false
        case .connected(let id): try connected(id)
        case .received(let id, let bytes): try read(bytes, from: id)
        case .ended(let id): forget(id)
        }
        return true
    }

    /// What a peer said that has shaken hands: a message, a malformed one, a subscription.
    func take(_ event: ZMTPDecoder.Event, from id: RoutingID) throws(ZeroMQError) {}

    /// A connection is gone, or will be at once.
    func ended(_ id: RoutingID) {}

    /// What waits to be sent to all peers.
    final var budget: OutboundQueue.Budget { table.budget }

    /// What waits to be sent to a peer.
    final func queue(of id: RoutingID) -> OutboundQueue? { table.queue(of: id) }

    /// A peer has said all that it must. Its connection ends where there is no room for it.
    ///
    /// - Returns: Whether there is.
    final func establish(_ id: RoutingID) throws(ZeroMQError) -> Bool {
        if table.establish(id) { return true }
        try end(id)
        return false
    }

    /// A peer has taken back what it must say.
    final func reopen(_ id: RoutingID) { table.reopen(id, at: now) }

    /// Queues a message of one frame for a peer, in one copy, unless its queue is full.
    final func sendMessage(
        _ body: UnsafeRawBufferPointer, isCommand: Bool = false, to id: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        guard let queue = table.queue(of: id) else { return .unreachable }
        guard queue.hasRoom else { return .wouldBlock }
        var frame = OutgoingFrame(
            body, isCommand: isCommand, sealedBy: table.curve(of: id), in: budget)
        return try send(&frame, queue, to: id)
    }

    /// Queues a frame for a peer, which counts in the peer's queue.
    final func send(
        _ frame: inout OutgoingFrame, _ queue: OutboundQueue?, to id: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        try open().send(&frame, counting: queue, to: id)
    }

    /// Ends a connection. What waits in both directions is lost.
    final func end(_ id: RoutingID) throws(ZeroMQError) {
        try open().close(id)
        forget(id)
    }

    /// Whether connections are encrypted.
    final var isEncrypted: Bool { table.limits.key != nil }

    /// What seals what is sent to a peer.
    final func curve(of id: RoutingID) -> CurveSession? { table.curve(of: id) }

    /// Whether nothing of a connection counts any more.
    final func hasEnded(_ id: RoutingID) -> Bool { !table.contains(id) }

    /// Counts a message that nobody can read, and ends a connection that has sent too many.
    final func countRefusal(of id: RoutingID) throws(ZeroMQError) {
        if table.refuse(id) { try end(id) }
    }

    private func forget(_ id: RoutingID) {
        guard table.contains(id) else { return }
        table.remove(id)
        ended(id)
    }

    private func connected(_ id: RoutingID) throws(ZeroMQError) {
        table.add(id, at: now)
        try say(ZMTP.greeting(table.limits.key == nil ? .null : .curve), to: id)
        while let surplus = table.surplus { try end(surplus) }
    }

    private func read(
        _ bytes: UnsafeRawBufferPointer, from id: RoutingID
    ) throws(ZeroMQError) {
        events.removeAll(keepingCapacity: true)
        var fault: ZMTPFault?
        do throws(ZMTPFault) {
            try table.read(bytes, from: id, at: now, into: &events)
        } catch {
            fault = error
        }
        var ping: Bytes?
        for event in events {
            switch event {
            case .answer(let bytes): try say(bytes, to: id)
            case .identified(let key): try admit(id, key)
            case .ping(let context): ping = context
            case .message, .malformed, .subscription: try take(event, from: id)
            }
        }
        // One answer says that this side lives, however many came at once.
        if let ping {
            _ = try ZMTP.pong(ping)[...].withRawBytes { body throws(ZeroMQError) in
                try sendMessage(body, isCommand: true, to: id)
            }
        }
        if let fault {
            if let says = fault.says { try say(says, to: id) }
            try end(id)
        }
        while let excess = table.excess { try end(excess) }
    }

    private func admit(_ id: RoutingID, _ key: CurvePublicKey) throws(ZeroMQError) {
        let most = connectionsMax(key)
        if let most, let answer = table.admit(id, key, most: most) {
            try say(answer, to: id)
        } else {
            try say(ZMTP.error(most == nil ? ZMTP.refusedStatus : ZMTP.fullStatus), to: id)
            try end(id)
        }
    }

    /// Says something of the handshake's. Who doesn't read it will not miss it.
    private func say(_ bytes: [UInt8], to id: RoutingID) throws(ZeroMQError) {
        var frame = OutgoingFrame(handshake: bytes, in: budget)
        _ = try send(&frame, table.queue(of: id), to: id)
    }
}

/// How full is what all peers of a serving socket share, and how full it may be.
public struct ServingLevels: Sendable {
    /// Connections that are established.
    public let connections: (level: Int, most: Int)
    /// Connections whose peers have not said yet what they are, and who.
    public let handshakes: (level: Int, most: Int)
    /// Bytes that wait to be sent.
    public let queueBytes: (level: Int, most: Int)
}
