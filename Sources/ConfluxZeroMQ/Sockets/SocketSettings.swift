import CSockets

/// Everything that is set when a socket opens. Each value is bounded; opening a socket checks it.
///
/// Four things are not settings, since nothing here works without them: a router reports peers
/// that it cannot reach, a publisher drops for a subscriber that is too slow and slows nobody else, nothing
/// is queued for a connection that does not stand, and no call ever blocks.
public struct SocketSettings: Sendable, Hashable {
    /// How many messages wait to be sent to one peer, 1 to 1,000,000. At the bound a router and
    /// a client report `wouldBlock`, and a publisher drops for that subscriber alone. 1,000 is
    /// many times what a healthy peer leaves waiting.
    public var sendQueueMessages = 1_000

    /// The largest message that is received, 1 byte to 1 GiB. Who sends a larger one is
    /// disconnected.
    public var messageBytesMax = 64 << 20

    /// The most bytes of messages that are not complete, of all connections of a serving socket
    /// together, 1 byte to 16 GiB, and at least twice `messageBytesMax`. At the bound the connection
    /// ends whose message has been under way for longest.
    public var heldBytesMax = 32 << 20

    /// How many peers may be connected with a serving socket, 1 to 1,000,000. A further one is cut
    /// off.
    public var connectionsMax = 4_096

    /// How many connections of a serving socket may be such that their peers have not said yet what they
    /// are and who, and on a publisher not subscribed, 1 to 1,000,000. They don't count in
    /// `connectionsMax`. At the bound the one ends that has been so for longest.
    public var handshakesMax = 1_024

    /// How long `close()` waits for what is not sent, 0 to 60 s. A second lets farewells out.
    public var linger = Duration.seconds(1)

    /// After how long a silence TCP probes the connection, 1 s to 2 h; nil: the system's choice.
    /// Below what firewalls and load balancers forget a connection after.
    public var keepAliveIdle: Duration? = .seconds(30)

    /// The time between two TCP probes, 1 s to 10 min; three without an answer end it.
    public var keepAliveInterval = Duration.seconds(10)

    /// How long to wait before connecting again, 1 ms to 60 s, and up to as much again
    /// at random.
    public var reconnectInterval = Duration.milliseconds(100)

    /// The longest that repeated failures stretch that to, up to 10 min. With 2 s a sequencer
    /// that was away for long has its nodes back soon, and no storm of them.
    public var reconnectIntervalMax = Duration.seconds(2)

    /// The longest that the same is for a side that refuses connections, or does not speak as this one:
    /// the first pause is a second, and each further one twice as long, up to this, 1 s to 10 min.
    public var refusedIntervalMax = Duration.seconds(16)

    /// The time after which an attempt to connect to one address is given up, 1 ms to 10 min; the system's own
    /// is minutes.
    public var connectTimeout = Duration.seconds(5)

    /// For how long what was sent may stay without TCP's acknowledgement before the connection
    /// ends, 1 s to 10 min, where the system can do that: it finds a peer that is cut off without a
    /// sign, and one that is stopped. Longer than any pause of a healthy process.
    public var unacknowledgedMax = Duration.seconds(10)

    /// The time within which a new connection must have said what it is and who, 100 ms to 10 min,
    /// and on a publisher subscribed. Whatever it sends meanwhile, it ends then.
    public var handshakeInterval = Duration.seconds(10)

    /// Whether connections are encrypted, and who each side is.
    public var security = SocketSecurity.none

    /// How many connections wait to be accepted, 1 to 65,535; the system caps it further. All
    /// nodes come at once after a restart.
    public var backlog = 512

    /// The settings that this documentation names.
    public init() {}

    /// Checks every value against its bounds.
    ///
    /// - Throws: `invalidSetting` for the first value that lies outside, with its bounds.
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
    /// They are not: whoever reaches the port may connect, read and change what passes.
    case none
    /// The side that peers connect to, with its key. Peers without a key, or with one that
    /// ``ServingSocket/connectionsMax`` refuses, are cut off.
    case server(CurveKeyPair)
    /// The side that connects, with its key, to whoever has the secret half of the server's.
    case client(CurveKeyPair, server: CurvePublicKey)

    var serverKey: CurveKeyPair? {
        if case .server(let key) = self { key } else { nil }
    }

    /// A session for a new connection of a side that connects.
    func clientSession() -> CurveSession? {
        if case .client(let key, let server) = self { CurveSession(key, to: server) } else { nil }
    }
}

extension Duration {
    /// Milliseconds, rounded up, so that who waits for them does not come back too early.
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
