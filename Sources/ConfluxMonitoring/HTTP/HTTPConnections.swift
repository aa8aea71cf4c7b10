import ConfluxVocabulary

/// The connections of the HTTP server, and which of them must end. It does no I/O; times are monotonic.
///
/// **The problem.** A probe of a supervisor must get through whatever others do: a sequencer that works would be
/// killed otherwise. Others may hold connections open, send a byte now and then, or connect again and again, and on
/// one machine they have the probe's address.
///
/// **The answer.** A new connection is always accepted. Above the bound another one ends: of the address that has
/// most, the oldest that has not made an admitted request, or else the oldest. And a connection ends that takes too
/// long for its request, or to read the answer and send the next one, whatever it sends meanwhile. While this process
/// owes an answer, that time does not pass.
///
/// *Use*: a connection is named by its socket.
struct HTTPConnections {
    private struct Connection {
        let address: [UInt8]
        /// When it connected, or got its last answer; nil while this process owes it an answer.
        var since: Duration?
        /// Its number, in the order in which they connected.
        let turn: UInt64
        /// Whether it has made a request that may be answered.
        var isAdmitted = false
    }

    let connectionsMax: Int
    /// How long a connection may take for its request, or for an answer and the next request.
    let requestMax: Duration
    /// Those that were not told to end.
    private var connections: [Int32: Connection] = [:]
    private var shares = Shares<[UInt8]>()
    private var turn: UInt64 = 0

    /// Makes the table of a server without connections.
    init(connectionsMax: Int, requestMax: Duration) {
        self.connectionsMax = connectionsMax
        self.requestMax = requestMax
    }

    /// How many connections there are that need not end.
    var count: Int { connections.count }

    /// A connection begins.
    ///
    /// - Parameters:
    ///   - socket: Its socket.
    ///   - address: The bytes of the peer's IP address. Of an IPv6 address only the network counts, since one machine
    ///     may have all addresses of it.
    ///   - now: The time.
    /// - Returns: The connection that must end to make room; nil if none must.
    mutating func begin(_ socket: Int32, from address: some Sequence<UInt8>, at now: Duration)
        -> Int32?
    {
        let address = Array(address.prefix(8))
        turn += 1
        connections[socket] = Connection(address: address, since: now, turn: turn)
        shares.add(of: address)
        guard connections.count > connectionsMax else { return nil }
        let others = connections.filter { $0.key != socket }
        let most = others.values.map { shares.use(of: $0.address) }.max()
        let surplus = others.filter { shares.use(of: $0.value.address) == most }
            .min { Self.rank($0.value) < Self.rank($1.value) }?.key
        if let surplus { end(surplus) }
        return surplus
    }

    private static func rank(_ connection: Connection) -> (Int, UInt64) {
        (connection.isAdmitted ? 1 : 0, connection.turn)
    }

    /// A connection has made a request that may be answered: one with the token, if a token is needed.
    mutating func admit(_ socket: Int32) { connections[socket]?.isAdmitted = true }

    /// A request has arrived: its answer is owed.
    mutating func owe(_ socket: Int32) { connections[socket]?.since = nil }

    /// A connection has its answer.
    mutating func settle(_ socket: Int32, at now: Duration) { connections[socket]?.since = now }

    /// A connection has ended, or must.
    mutating func end(_ socket: Int32) {
        guard let ended = connections.removeValue(forKey: socket) else { return }
        shares.remove(of: ended.address)
    }

    /// Takes the connections that must end because they took too long.
    mutating func endOverdue(at now: Duration) -> [Int32] {
        let overdue = connections.filter { _, connection in
            connection.since.map { now - $0 >= requestMax } ?? false
        }.keys.sorted()
        for socket in overdue { end(socket) }
        return overdue
    }
}
