import CSockets

/// The settings of a socket. Each value has bounds, which are checked when a socket is opened.
///
/// Four things are not settings, since everything here depends on them: a router reports peers that it cannot reach;
/// a publisher drops messages for a subscriber that is too slow, and slows nobody else; nothing is queued without an
/// established connection; and no call ever blocks.
public struct SocketSettings: Sendable, Hashable {
    /// How many messages may be queued for one peer, 1 to 1,000,000. At the bound a router and a
    /// client report `wouldBlock`, and a publisher drops messages for that subscriber alone. 1,000
    /// is many times what is queued for a healthy peer.
    public var sendQueueMessages = 1_000

    /// The largest message that is received, 1 byte to 1 GiB. A peer that sends a larger one is
    /// disconnected.
    public var messageBytesMax = 64 << 20

    /// The most bytes of incomplete messages, of all connections of a serving socket together, 1 byte to 16 GiB. If
    /// it is less than twice `messageBytesMax`, that is the bound. At the bound the connection with the oldest
    /// incomplete message ends.
    public var heldBytesMax = 32 << 20

    /// How many connections of a serving socket may be established, 1 to 1,000,000. A further one
    /// is ended.
    public var connectionsMax = 4_096

    /// How many connections of a serving socket may still be in the handshake, or on a publisher not subscribed, 1 to
    /// 1,000,000. They don't count in `connectionsMax`. At the bound the oldest of them ends.
    public var handshakesMax = 1_024

    /// How long `close()` goes on sending what is queued, 0 to 60 s. A second is enough for last
    /// messages.
    public var linger = Duration.seconds(1)

    /// How long a connection may be silent before TCP probes it, 1 s to 2 h; nil for the system's
    /// choice. Firewalls and load balancers forget a connection only after a longer time.
    public var keepAliveIdle: Duration? = .seconds(30)

    /// The time between two TCP probes, 1 s to 10 min; three without an answer end the connection.
    public var keepAliveInterval = Duration.seconds(10)

    /// How long to wait before connecting again, 1 ms to 60 s. A random time of up to the same
    /// length is added.
    public var reconnectInterval = Duration.milliseconds(100)

    /// The longest that repeated failures stretch that pause to, up to 10 min. With 2 s, nodes are
    /// back soon after a long absence of their sequencer, and not all at once.
    public var reconnectIntervalMax = Duration.seconds(2)

    /// The longest pause after the other side has refused a connection, or spoken another protocol, 1 s to 10 min.
    /// The first pause is a second, and each further one is twice as long, up to this.
    public var refusedIntervalMax = Duration.seconds(16)

    /// How long an attempt to connect to one address may take, 1 ms to 10 min. The system's own limit is minutes.
    public var connectTimeout = Duration.seconds(5)

    /// How long TCP's acknowledgement of sent data may take before the connection ends, 1 s to 10
    /// min, on systems that support it. This detects a peer that is cut off silently, or stopped.
    /// The default is longer than any pause of a healthy process.
    public var unacknowledgedMax = Duration.seconds(10)

    /// How long the handshake of a new connection may take, with the subscription on a publisher,
    /// 100 ms to 10 min. Then the connection ends, whatever it has sent.
    public var handshakeInterval = Duration.seconds(10)

    /// Whether connections are encrypted, and who each side is.
    public var security = SocketSecurity.none

    /// How many connections may wait to be accepted, 1 to 65,535; the system may cap it further. After a restart all
    /// nodes connect at once. At the bound the system drops attempts to connect, and repeats each a second later.
    public var backlog = 4_096

    /// Makes the default settings.
    public init() {}

    /// Checks every value against its bounds.
    ///
    /// - Throws: `invalidSetting` for the first value that is outside its bounds.
    public func validate() throws(ZeroMQError) {
        try check("sendQueueMessages", sendQueueMessages, 1...1_000_000)
        try check("messageBytesMax", messageBytesMax, 1...(1 << 30))
        try check("heldBytesMax", heldBytesMax, 1...(16 << 30))
        try check("connectionsMax", connectionsMax, 1...1_000_000)
        try check("handshakesMax", handshakesMax, 1...1_000_000)
        try check("linger", linger, .zero ... .seconds(60))
        if let keepAliveIdle {
            try check("keepAliveIdle", keepAliveIdle, .seconds(1) ... .seconds(7_200))
        }
        try check("keepAliveInterval", keepAliveInterval, .seconds(1) ... .seconds(600))
        try check("reconnectInterval", reconnectInterval, .milliseconds(1) ... .seconds(60))
        try check("reconnectIntervalMax", reconnectIntervalMax, reconnectInterval ... .seconds(600))
        try check("refusedIntervalMax", refusedIntervalMax, .seconds(1) ... .seconds(600))
        try check("connectTimeout", connectTimeout, .milliseconds(1) ... .seconds(600))
        try check("unacknowledgedMax", unacknowledgedMax, .seconds(1) ... .seconds(600))
        try check("handshakeInterval", handshakeInterval, .milliseconds(100) ... .seconds(600))
        try check("backlog", backlog, 1...65_535)
    }

    private func check<Value: Comparable>(
        _ name: String, _ value: Value, _ bounds: ClosedRange<Value>
    ) throws(ZeroMQError) {
        guard bounds.contains(value) else {
            throw ZeroMQError(
                .invalidSetting,
                "\(name) is \(value); set it between \(bounds.lowerBound) and "
                    + "\(bounds.upperBound).")
        }
    }

    var keeping: conflux_keeping {
        conflux_keeping(
            idle: keepAliveIdle?.wholeSeconds ?? 0, interval: keepAliveInterval.wholeSeconds,
            unacknowledged_milliseconds: unacknowledgedMax.wholeMilliseconds)
    }
}

/// Whether a socket's connections are encrypted, and who each side is, by CURVE: see
/// [the RFC](https://rfc.zeromq.org/spec/26/).
public enum SocketSecurity: Sendable, Hashable {
    /// They are not encrypted: anyone who reaches the port may connect, and read and change what
    /// passes.
    case none
    /// The side that peers connect to, with its key. Peers without a key, or with one that
    /// ``ServingSocket/connectionsMax`` refuses, are cut off.
    case server(CurveKeyPair)
    /// The side that connects, with its key. It connects only to a server that has the secret half
    /// of this key.
    case client(CurveKeyPair, server: CurvePublicKey)

    var serverKey: CurveKeyPair? {
        if case .server(let key) = self { key } else { nil }
    }

    /// A session for a new connection of a client.
    func clientSession() -> CurveSession? {
        if case .client(let key, let server) = self { CurveSession(key, to: server) } else { nil }
    }
}

extension Duration {
    /// Milliseconds, rounded up, so that a wait does not end too early.
    var wholeMilliseconds: Int32 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let bounded = min(seconds, Int64(Int32.max) / 1_000 - 1)
        return Int32(bounded * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }

    var wholeSeconds: Int32 {
        Int32(clamping: components.seconds + (components.attoseconds > 0 ? 1 : 0))
    }
}
