import ConfluxVocabulary

/// Who is connected with a serving socket, and what each may cost.
///
/// It says which connections must end, and the socket ends them. Times are monotonic.
///
///     connected ─handshake, and a subscription where one is awaited─▶ established
///         ▲└─too long, or too many─▶ ended ◀─silent, or misbehaved─┘│
///         └────────────────────────unsubscribed──────────────────────┘
///
/// *Invariant*: a connection that is established never ends for the sake of one that is not.
struct ConnectionTable {
    /// What a socket gives its peers.
    struct Limits {
        /// What the socket is, and its key, where connections are encrypted.
        var type: ZMTP.SocketType
        var key: CurveKeyPair?
        /// How many connections there may be that are established.
        var connectionsMax: Int
        /// How many there may be that are not. *At the bound* the one ends that has been so for longest.
        var handshakesMax: Int
        /// The most bytes of a frame.
        var messageBytesMax: Int
        /// The most bytes that are held of frames under way, of all connections together.
        var heldBytesMax: Int
        /// How long a connection may take to be established, whatever it sends meanwhile.
        var handshakeMax: Duration
        /// How long an established connection may say nothing; nil: for ever.
        var silenceMax: Duration?
        /// How many bytes may wait to be sent, to one connection and to all.
        var outboundBytesMax = OutboundQueue.Limits(connection: 16 << 20, all: 256 << 20)
    }

    private struct Connection {
        var decoder: ZMTPDecoder
        /// The key that the peer proved to have, once it is admitted.
        var key: CurvePublicKey?
        /// What waits to be sent to it, from when it may be spoken to.
        var queue: OutboundQueue?
        /// When it began to be established: when it connected, or ended its subscription.
        var openedAt: Duration
        var heardAt: Duration
        /// When its frame under way began: the piece of all pieces.
        var frameBegan: UInt64 = 0
        /// How many of its messages nobody could read.
        var refusals = 0
        /// When it ends in any case; nil if nothing says so.
        var endsAt: Duration?
        /// Whether its peer has said all that makes it one of those that are served. *Invariant*: those
        /// that are not are in `opening`.
        var isEstablished = false

        var heldBytes: Int { decoder.heldBytes }
    }

    /// What the peers with one key have together.
    private struct KeyUse {
        var connectionCount = 0
        let share = OutboundQueue.Share()
    }

    let limits: Limits
    private var connections: [RoutingID: Connection] = [:]
    private var pieces: UInt64 = 0
    /// Those that are not established, the one first that has been so for longest.
    private var opening = ArrivalQueue<RoutingID>()
    /// How many are established.
    private(set) var establishedCount = 0
    /// *Invariant*: one for each key that has a connection.
    private var keys: [CurvePublicKey: KeyUse] = [:]
    /// What waits to be sent to all.
    let budget: OutboundQueue.Budget
    /// How many bytes are held of frames under way.
    private(set) var heldBytes = 0

    /// How many messages of a connection may be such that nobody can read them.
    static let refusalsMax = 64
    /// A frame that holds less than this is never what fills the memory.
    private static let evictedBytesMin = 16 << 10

    init(limits: Limits) {
        self.limits = limits
        budget = OutboundQueue.Budget(bytesMax: limits.outboundBytesMax.all)
    }

    /// How many connections are not established.
    var handshakeCount: Int { opening.count }

    func contains(_ id: RoutingID) -> Bool { connections[id] != nil }

    /// A peer has connected. It has to say what it is, and who.
    mutating func add(_ id: RoutingID, at now: Duration) {
        connections[id] = Connection(
            decoder: ZMTPDecoder(
                limits.type, messageBytesMax: limits.messageBytesMax,
                curve: limits.key.map { CurveSession($0) }),
            openedAt: now, heardAt: now)
        opening.append(id)
    }

    /// The connection that must end since too many are not established: the one that has been so for
    /// longest. Who speaks in earnest is soon done. Those that are established are never in question.
    var surplus: RoutingID? { opening.count > limits.handshakesMax ? opening.first : nil }

    /// Who proved to have a key is admitted, if its connection is there still.
    ///
    /// - Parameters:
    ///   - id: Whose connection.
    ///   - key: The key.
    ///   - most: How many connections the peers with this key may have.
    /// - Returns: What is to be said to it; nil if it, or its key, has no room.
    mutating func admit(_ id: RoutingID, _ key: CurvePublicKey, most: Int) -> [UInt8]? {
        var use = keys[key] ?? KeyUse()
        guard use.connectionCount < most, establishedCount < limits.connectionsMax,
            let answer = connections[id]?.decoder.admit()
        else { return nil }
        use.connectionCount += 1
        keys[key] = use
        connections[id]?.key = key
        connections[id]?.queue = OutboundQueue(
            bytesMax: limits.outboundBytesMax.connection, share: use.share, budget: budget)
        if !limits.type.awaitsSubscription { _ = establish(id) }
        return answer
    }

    /// The peer of a connection has said all that it must, if the connection is there still.
    ///
    /// - Returns: Whether there is room for it; if not, it must end.
    mutating func establish(_ id: RoutingID) -> Bool {
        guard let index = connections.index(forKey: id),
            !connections.values[index].isEstablished
        else { return true }
        guard establishedCount < limits.connectionsMax else { return false }
        opening.remove(id)
        establishedCount += 1
        connections.values[index].isEstablished = true
        if connections.values[index].queue == nil {
            connections.values[index].queue = OutboundQueue(
                bytesMax: limits.outboundBytesMax.connection, share: OutboundQueue.Share(),
                budget: budget)
        }
        return true
    }

    /// The peer of an established connection has taken back what made it one.
    mutating func reopen(_ id: RoutingID, at now: Duration) {
        guard let index = connections.index(forKey: id),
            connections.values[index].isEstablished
        else { return }
        establishedCount -= 1
        connections.values[index].isEstablished = false
        connections.values[index].openedAt = now
        opening.append(id)
    }

    /// What waits to be sent to a peer; nil for one that nothing may be said to yet.
    func queue(of id: RoutingID) -> OutboundQueue? { connections[id]?.queue }

    /// The key of an admitted peer; nil if keys don't count.
    func key(of id: RoutingID) -> CurvePublicKey? { connections[id]?.key }

    /// What seals what is sent to a peer; nil if nothing is encrypted.
    func curve(of id: RoutingID) -> CurveSession? { connections[id]?.decoder.curve }

    /// The connections of admitted peers whose keys are among these.
    func connections(of isMeant: (CurvePublicKey) -> Bool) -> [RoutingID] {
        connections.compactMap { id, connection in
            connection.key.map(isMeant) == true ? id : nil
        }
    }

    /// A connection has ended.
    mutating func remove(_ id: RoutingID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        heldBytes -= connection.heldBytes
        opening.remove(id)
        if connection.isEstablished { establishedCount -= 1 }
        guard let key = connection.key else { return }
        keys[key]?.connectionCount -= 1
        if keys[key]?.connectionCount == 0 { keys[key] = nil }
    }

    /// A connection must end at a time, and is served until then.
    mutating func end(_ id: RoutingID, at time: Duration) { connections[id]?.endsAt = time }

    /// Reads what a peer sent.
    ///
    /// - Parameters:
    ///   - piece: The bytes.
    ///   - id: Whose they are. Those of a connection that was removed are thrown away.
    ///   - now: The time.
    ///   - events: What they complete is appended here, also where this throws.
    /// - Throws: ``ZMTPFault`` when this connection must end.
    mutating func read(
        _ piece: UnsafeRawBufferPointer, from id: RoutingID, at now: Duration,
        into events: inout [ZMTPDecoder.Event]
    ) throws(ZMTPFault) {
        guard let index = connections.index(forKey: id) else { return }
        pieces += 1
        let before = connections.values[index].heldBytes
        let count = events.count
        defer { heldBytes += connections.values[index].heldBytes - before }
        try connections.values[index].decoder.decode(piece, into: &events)
        connections.values[index].heardAt = now
        // Whoever proves nothing may speak at once.
        if limits.key == nil, !limits.type.awaitsSubscription,
            connections.values[index].decoder.isReady, !establish(id)
        {
            events.removeSubrange(count...)
            throw ZMTPFault("more connections than there may be")
        }
        if before == 0 || events.count > count { connections.values[index].frameBegan = pieces }
    }

    /// Nobody can read a message.
    ///
    /// - Returns: Whether the connection must end: its peer speaks something else, or means ill.
    mutating func refuse(_ id: RoutingID) -> Bool {
        guard let index = connections.index(forKey: id) else { return false }
        connections.values[index].refusals += 1
        return connections.values[index].refusals >= Self.refusalsMax
    }

    /// The connection that must end since too much is held: the one whose frame has been under way
    /// for longest. A frame that somebody sends in earnest is soon complete.
    var excess: RoutingID? {
        guard heldBytes > limits.heldBytesMax else { return nil }
        return connections.lazy.filter { $0.value.heldBytes >= Self.evictedBytesMin }
            .min { $0.value.frameBegan < $1.value.frameBegan }?.key
    }

    /// Which connections were not established in time, have been silent for too long, or are to end. TCP
    /// tells of most that are gone; this finds those of which it does not, and those that only hold a
    /// place.
    ///
    /// - Parameter now: The time.
    /// - Returns: Those to end.
    func overdue(at now: Duration) -> [RoutingID] {
        connections.compactMap { id, connection in
            if let end = connection.endsAt, now >= end { return id }
            if !connection.isEstablished {
                return now - connection.openedAt > limits.handshakeMax ? id : nil
            }
            guard let limit = limits.silenceMax else { return nil }
            return now - connection.heardAt > limit ? id : nil
        }
    }
}
