import ConfluxVocabulary

/// Who is connected with a serving socket, and what each may cost.
///
/// Values only: it says which connections must end, and the socket ends them. Times are monotonic.
struct ConnectionTable {
    /// What a socket gives its peers.
    struct Limits {
        /// What the socket is, and its key, where connections are encrypted.
        var type: ZMTP.SocketType
        var key: CurveKeyPair?
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
        /// How many pieces wait of a connection at most. *At the bound* it is not read.
        var queuePieces = 1
    }

    private struct Connection {
        /// nil when it is about to end: what it sends is thrown away.
        var decoder: ZMTPDecoder?
        /// The key that the peer proved to have, once it is admitted.
        var key: CurvePublicKey?
        var heardAt: Duration
        /// When its frame under way began: the piece of all pieces.
        var frameBegan: UInt64 = 0
        /// How many of its messages nobody could read.
        var refusals = 0
        /// How many pieces were taken of it. That it connected is one.
        var pieces = 1
        /// At how many pieces it ends at the earliest, once it is about to.
        var endPieces = 0
        /// Whether it is one of those that may be there.
        var hasPlace = true

        var heldBytes: Int { decoder?.heldBytes ?? 0 }
    }

    let limits: Limits
    private var connections: [RoutingID: Connection] = [:]
    private var pieces: UInt64 = 0
    /// How many have a place.
    private var placeCount = 0
    /// How many bytes are held of frames under way.
    private(set) var heldBytes = 0

    /// How many messages of a connection may be such that nobody can read them.
    static let refusalsMax = 64
    /// A frame that holds less than this is never what fills the memory.
    private static let evictedBytesMin = 16 << 10
    /// How many pieces are thrown away of a connection that is about to end, for as long as more wait: 4 MiB.
    static let drainedPiecesMax = 512

    init(limits: Limits) {
        self.limits = limits
    }

    var count: Int { connections.count }

    func contains(_ id: RoutingID) -> Bool { connections[id] != nil }

    /// Whether a connection is there, and not about to end.
    func isRead(_ id: RoutingID) -> Bool { connections[id]?.decoder != nil }

    /// A peer has connected.
    ///
    /// - Returns: Whether there is room for it; if not, it must end.
    mutating func add(_ id: RoutingID, at now: Duration) -> Bool {
        guard placeCount < limits.connectionsMax else {
            connections[id] = Connection(
                decoder: nil, heardAt: now, endPieces: Self.drainedPiecesMax, hasPlace: false)
            return false
        }
        placeCount += 1
        connections[id] = Connection(
            decoder: ZMTPDecoder(
                limits.type, messageBytesMax: limits.messageBytesMax, key: limits.key),
            heardAt: now)
        return true
    }

    /// Who proved to have a key is admitted, if its connection is there still.
    ///
    /// - Returns: What is to be said to it.
    mutating func admit(_ id: RoutingID, _ key: CurvePublicKey) -> [UInt8]? {
        guard let answer = connections[id]?.decoder?.admit() else { return nil }
        connections[id]?.key = key
        return answer
    }

    /// The key of an admitted peer; nil where keys don't count.
    func key(of id: RoutingID) -> CurvePublicKey? { connections[id]?.key }

    /// What seals what is sent to a peer; nil where nothing is encrypted.
    func curve(of id: RoutingID) -> CurveSession? { connections[id]?.decoder?.curve }

    /// The connections of admitted peers whose keys are among these.
    func connections(of isMeant: (CurvePublicKey) -> Bool) -> [RoutingID] {
        connections.compactMap { id, connection in
            connection.decoder != nil && connection.key.map(isMeant) == true ? id : nil
        }
    }

    /// A connection has ended.
    mutating func remove(_ id: RoutingID) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        heldBytes -= connection.heldBytes
        if connection.hasPlace { placeCount -= 1 }
    }

    /// A connection must end. Until it does it keeps its place, and nothing else.
    mutating func markEnding(_ id: RoutingID) {
        guard let index = connections.index(forKey: id) else { return }
        heldBytes -= connections.values[index].heldBytes
        connections.values[index].decoder = nil
        connections.values[index].endPieces =
            connections.values[index].pieces + Self.drainedPiecesMax
    }

    /// Another piece was taken of a connection.
    mutating func countPiece(of id: RoutingID) { connections[id]?.pieces += 1 }

    /// Whether a connection that is about to end may end behind its last piece, though more may wait:
    /// enough was thrown away, and libzmq has just been told that there is room in its queue. It is told so
    /// each time that half of the queue was taken.
    func mayEnd(_ id: RoutingID) -> Bool {
        guard let connection = connections[id] else { return false }
        return connection.decoder == nil && connection.pieces >= connection.endPieces
            && connection.pieces.isMultiple(of: (limits.queuePieces + 1) / 2)
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
