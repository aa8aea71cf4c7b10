import ConfluxVocabulary

/// Who is connected with a serving socket, and what each may cost.
///
/// Values only: it says which connections must end, and the socket ends them. Times are monotonic.
struct ConnectionTable {
    /// What a socket gives its peers.
    struct Limits {
        /// How many connections there may be.
        var connectionsMax: Int
        /// The most bytes of a frame.
        var messageBytesMax: Int
        /// The most bytes that are held of frames under way, of all connections together.
        var heldBytesMax: Int
        /// How long a connection may take to say what it is.
        var handshakeMax: Duration
        /// How long a connection may say nothing; nil: for ever.
        var silenceMax: Duration?
    }

    private struct Connection {
        /// nil when it is about to end: nothing of it is read any more.
        var decoder: ZMTPDecoder?
        var heardAt: Duration
        /// When its frame under way began: the piece of all pieces.
        var frameBegan: UInt64 = 0
        /// How many of its messages nobody could read.
        var refusals = 0

        var heldBytes: Int { decoder?.heldBytes ?? 0 }
    }

    let limits: Limits
    private var connections: [RoutingID: Connection] = [:]
    private var pieces: UInt64 = 0
    /// How many bytes are held of frames under way.
    private(set) var heldBytes = 0

    /// How many messages of a connection may be such that nobody can read them.
    static let refusalsMax = 64
    /// A frame that holds less than this is never what fills the memory.
    private static let evictedBytesMin = 16 << 10

    init(limits: Limits) {
        self.limits = limits
    }

    var count: Int { connections.count }

    func contains(_ id: RoutingID) -> Bool { connections[id] != nil }

    /// Whether a connection is there, and not about to end.
    func isRead(_ id: RoutingID) -> Bool { connections[id]?.decoder != nil }

    /// A peer has connected.
    ///
    /// - Returns: Whether there is room for it.
    mutating func add(_ id: RoutingID, at now: Duration) -> Bool {
        guard connections.count < limits.connectionsMax else { return false }
        connections[id] = Connection(
            decoder: ZMTPDecoder(messageBytesMax: limits.messageBytesMax), heardAt: now)
        return true
    }

    /// A connection has ended.
    mutating func remove(_ id: RoutingID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        heldBytes -= connection.heldBytes
    }

    /// A connection must end, and can't yet: it keeps its place, and nothing else.
    mutating func markEnding(_ id: RoutingID) {
        guard let index = connections.index(forKey: id) else { return }
        heldBytes -= connections.values[index].heldBytes
        connections.values[index].decoder = nil
    }

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
        guard let index = connections.index(forKey: id),
            connections.values[index].decoder != nil
        else { return }
        pieces += 1
        let before = connections.values[index].heldBytes
        let count = events.count
        defer { heldBytes += connections.values[index].heldBytes - before }
        try connections.values[index].decoder?.decode(piece, into: &events)
        connections.values[index].heardAt = now
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

    /// Which connections have been silent for too long, or are to end. TCP tells of most that are
    /// gone; this finds those of which it does not, and those that only hold a place.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - isKept: Whether a connection may be silent for ever.
    /// - Returns: Those to end.
    func silent(at now: Duration, unless isKept: (RoutingID) -> Bool) -> [RoutingID] {
        connections.compactMap { id, connection in
            guard let decoder = connection.decoder else { return id }
            let limit = decoder.isReady ? limits.silenceMax : limits.handshakeMax
            guard let limit, now - connection.heardAt > limit, !isKept(id) else { return nil }
            return id
        }
    }
}
