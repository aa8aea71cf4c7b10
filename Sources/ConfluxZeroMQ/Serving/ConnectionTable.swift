import ConfluxVocabulary

/// The connections of a serving socket, and their limits.
///
/// It decides which connections must end; the socket ends them. Times are monotonic.
///
///     arrived ──admitted, and a subscription if one is awaited──▶ established
///         ▲└─too long, or too many─▶ ended ◀─silent, or misbehaved─┘│
///         └────────────────────────unsubscribed──────────────────────┘
///
/// Peers whose handshakes are not complete are at the ``Door``.
///
/// *Invariant*: an established connection never ends to make room for one that is not.
struct ConnectionTable {
    /// The socket's type, its key and its limits.
    struct Limits {
        /// The socket's type, and its key if connections are encrypted.
        var type: ZMTP.SocketType
        var key: CurveKeyPair?
        /// The most established connections.
        var connectionsMax: Int
        /// The most connections that are not established. *At the bound* the oldest of them ends.
        var handshakesMax: Int
        /// The most bytes of a frame.
        var messageBytesMax: Int
        /// The most bytes that all connections together may hold of incomplete frames.
        var heldBytesMax: Int
        /// How long a connection may take to become established, whatever it sends meanwhile.
        var handshakeMax: Duration
        /// How long an established connection may be silent; nil for any time.
        var silenceMax: Duration?
        /// The most bytes that may be queued, for one connection and for all.
        var outboundBytesMax = OutboundQueue.Limits(connection: 16 << 20, all: 256 << 20)
    }

    private struct Connection {
        var decoder: ZMTPDecoder
        /// The peer's key, once the peer has proved that it has it and is admitted.
        var key: CurvePublicKey?
        /// What is queued for it; nil before messages may be sent to it.
        var queue: OutboundQueue?
        /// When it arrived, or ended its subscription.
        var openedAt: Duration
        var heardAt: Duration
        /// When its incomplete frame began: the number of the piece, counted over all connections.
        var frameBegan: UInt64 = 0
        /// How many of its messages were unreadable.
        var refusals = 0
        /// When it must end in any case; nil if no such time is set.
        var endsAt: Duration?
        /// Whether its handshake is complete, and its subscription if one is awaited. *Invariant*: `opening` has
        /// exactly the connections for which this is false.
        var isEstablished = false

        var heldBytes: Int { decoder.heldBytes }

        /// Decodes bytes that the peer sent.
        ///
        /// - Parameters:
        ///   - piece: The bytes.
        ///   - number: The piece's number.
        ///   - now: The time.
        ///   - events: What the bytes complete is appended here, even if this throws.
        ///   - allHeldBytes: How many bytes all connections hold.
        /// - Throws: ``ZMTPFault`` if the connection must end.
        mutating func read(
            _ piece: UnsafeRawBufferPointer, number: UInt64, at now: Duration,
            into events: inout [ZMTPDecoder.Event], _ allHeldBytes: inout Int
        ) throws(ZMTPFault) {
            let (before, count) = (heldBytes, events.count)
            defer { allHeldBytes += heldBytes - before }
            try decoder.decode(piece, into: &events)
            heardAt = now
            if before == 0 || events.count > count { frameBegan = number }
        }
    }

    /// What the connections of one key use together.
    private struct KeyUse {
        var connectionCount = 0
        let share = OutboundQueue.Share()
    }

    let limits: Limits
    private var connections: [RoutingID: Connection] = [:]
    private var pieces: UInt64 = 0
    /// The connections that are not established, oldest first.
    private var opening = ArrivalQueue<RoutingID>()
    /// How many are established.
    private(set) var establishedCount = 0
    /// *Invariant*: an item for each key that has a connection, and no other.
    private var keys: [CurvePublicKey: KeyUse] = [:]
    /// What is queued for all connections.
    let budget: OutboundQueue.Budget
    /// How many bytes are held of incomplete frames.
    private(set) var heldBytes = 0

    /// At this number of unreadable messages, a connection must end.
    static let refusalsMax = 64
    /// A frame that holds less than this is never evicted.
    private static let evictedBytesMin = 16 << 10

    init(limits: Limits) {
        self.limits = limits
        budget = OutboundQueue.Budget(bytesMax: limits.outboundBytesMax.all)
    }

    /// How many connections are not established.
    var handshakeCount: Int { opening.count }

    func contains(_ id: RoutingID) -> Bool { connections[id] != nil }

    /// Adds the connection of a peer whose handshake is complete, except for its admission if connections are
    /// encrypted. It is not established yet.
    mutating func add(_ id: RoutingID, _ decoder: ZMTPDecoder, at now: Duration) {
        pieces += 1
        connections[id] = Connection(
            decoder: decoder, openedAt: now, heardAt: now, frameBegan: pieces)
        heldBytes += decoder.heldBytes
        opening.append(id)
    }

    /// The connection that must end because too many are not established: the oldest of them. An honest peer is
    /// established soon. Established connections are never considered.
    var surplus: RoutingID? { opening.count > limits.handshakesMax ? opening.first : nil }

    /// Admits a peer that has proved its key, if its connection still exists.
    ///
    /// - Parameters:
    ///   - id: The peer's connection.
    ///   - key: The key.
    ///   - most: How many connections the peers with this key may have.
    /// - Returns: The command to answer with; nil if there is no room for another connection, or
    ///   for another of this key.
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

    /// Marks a connection as established, if it still exists.
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

    /// Marks an established connection as not established: its peer has ended its subscription.
    mutating func reopen(_ id: RoutingID, at now: Duration) {
        guard let index = connections.index(forKey: id),
            connections.values[index].isEstablished
        else { return }
        establishedCount -= 1
        connections.values[index].isEstablished = false
        connections.values[index].openedAt = now
        opening.append(id)
    }

    /// What is queued for a peer; nil if messages may not be sent to it yet.
    func queue(of id: RoutingID) -> OutboundQueue? { connections[id]?.queue }

    /// The key of an admitted peer; nil if connections are not encrypted.
    func key(of id: RoutingID) -> CurvePublicKey? { connections[id]?.key }

    /// The session that seals messages to a peer; nil if connections are not encrypted.
    func curve(of id: RoutingID) -> CurveSession? { connections[id]?.decoder.curve }

    /// The connections of admitted peers whose keys are among these.
    func connections(of isMeant: (CurvePublicKey) -> Bool) -> [RoutingID] {
        connections.compactMap { id, connection in
            connection.key.map(isMeant) == true ? id : nil
        }
    }

    /// Removes a connection that has ended.
    mutating func remove(_ id: RoutingID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        heldBytes -= connection.heldBytes
        opening.remove(id)
        if connection.isEstablished { establishedCount -= 1 }
        guard let key = connection.key else { return }
        keys[key]?.connectionCount -= 1
        if keys[key]?.connectionCount == 0 { keys[key] = nil }
    }

    /// Sets the time at which a connection must end. It is served until then.
    mutating func end(_ id: RoutingID, at time: Duration) { connections[id]?.endsAt = time }

    /// Decodes bytes that a peer sent.
    ///
    /// - Parameters:
    ///   - piece: The bytes.
    ///   - id: The peer. If its connection was removed, the bytes are discarded.
    ///   - now: The time.
    ///   - events: What the bytes complete is appended here, even if this throws.
    /// - Throws: ``ZMTPFault`` if this connection must end.
    mutating func read(
        _ piece: UnsafeRawBufferPointer, from id: RoutingID, at now: Duration,
        into events: inout [ZMTPDecoder.Event]
    ) throws(ZMTPFault) {
        guard let index = connections.index(forKey: id) else { return }
        pieces += 1
        try connections.values[index].read(
            piece, number: pieces, at: now, into: &events, &heldBytes)
    }

    /// Counts an unreadable message of a connection.
    ///
    /// - Returns: Whether the connection must end: its peer speaks another protocol, or is hostile.
    mutating func refuse(_ id: RoutingID) -> Bool {
        guard let index = connections.index(forKey: id) else { return false }
        connections.values[index].refusals += 1
        return connections.values[index].refusals >= Self.refusalsMax
    }

    /// The connection that must end because too much is held: of the key that holds most, the one whose incomplete
    /// frame is oldest. A frame of an honest peer is complete soon. Without keys, all connections count together.
    var excess: RoutingID? {
        // Mutating, as otherwise each call would copy the table.
        mutating get {
            guard heldBytes > limits.heldBytesMax else { return nil }
            let candidates = connections.lazy.filter {
                $0.value.heldBytes >= Self.evictedBytesMin
            }
            let held = candidates.reduce(into: [CurvePublicKey?: Int]()) { held, item in
                held[item.value.key, default: 0] += item.value.heldBytes
            }
            guard let most = held.max(by: { $0.value < $1.value }) else { return nil }
            return candidates.filter { $0.value.key == most.key }
                .min { $0.value.frameBegan < $1.value.frameBegan }?.key
        }
    }

    /// The connections that were not established in time, have been silent for too long, or have reached the time at
    /// which they must end. TCP reports most peers that are gone; this finds the others, and those that only occupy a
    /// place.
    ///
    /// - Parameter now: The time.
    /// - Returns: The connections to end.
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
