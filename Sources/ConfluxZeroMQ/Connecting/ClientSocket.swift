import CSockets
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What has happened on a client socket.
public enum ClientEvent: Sendable, Hashable {
    /// The socket connects to an address. It reports this for each address of the host that it tries.
    case connecting
    /// The server has accepted the connection, and has not identified itself yet.
    case accepted
    /// The handshake is complete: messages flow. What was sent on an earlier connection may be lost.
    case connected
    /// A message of one frame.
    case message(Bytes)
    /// An attempt to connect to this address failed, or the connection ended. The socket makes the next attempt by
    /// itself.
    case failed(ConnectionFailure, at: Endpoint)
}

/// The side that connects to a serving socket, and reconnects whenever the connection breaks. It may have several
/// addresses to try (``connect(toAnyOf:)``). It uses a socket of the system, and speaks ZMTP itself.
///
///     idle ── connect ─▶ looking up ─▶ connecting ─▶ shaking hands ─▶ established
///                            ▲             │               │               │
///                            └── pausing ◀─┴───────────────┴───────────────┘
///
/// Owned by one thread at a time, whose poller says when ``receive()`` has something to do. No call blocks, except
/// closing while messages are queued. At most one read from the system and one message are held of what is received,
/// and at most 64 MiB are queued to be sent.
public final class ClientSocket: PolledSocket {
    /// Which type of socket it is to its peer.
    public enum Kind: Sendable, Hashable {
        /// The peer of a router (`DEALER`).
        case dealer
        /// The peer of a publisher (`SUB`), subscribed to everything.
        case subscriber

        var type: ZMTP.SocketType { self == .dealer ? .dealer : .subscriber }
    }

    enum Phase {
        case idle
        case lookingUp(Lookup)
        case connecting(Int32, Attempt, until: Duration)
        case shakingHands(ClientConnection, until: Duration)
        case established(ClientConnection)
        case pausing(until: Duration)
        case closed
    }

    /// What is left to try when the current address of a host fails.
    struct Attempt {
        var others: ArraySlice<conflux_address>
        /// Why the first of the failed addresses failed.
        var failure: ConnectionFailure?
    }

    private let type: ZMTP.SocketType
    let settings: SocketSettings
    var round: AddressRound?
    var phase = Phase.idle
    private var pause: ReconnectPause
    /// How many addresses the host had when it was looked up last.
    var hostAddressCount = 1
    /// Events that `receive()` has yet to return: those from index `taken` on.
    private var events: [ClientEvent] = []
    private var taken = 0
    /// Whether the last read took all that the system had. *Use*: `receive()` returns nil before it reads again.
    private var isDrained = false
    private var messages: [ZMTPDecoder.Event] = []
    private let pool = BufferPool()
    private let budget = OutboundQueue.Budget(bytesMax: 2 * ClientSocket.sendBytesMax)
    private let piece: UnsafeMutableRawBufferPointer

    /// The most bytes that may be queued. *At the bound* a message is not queued.
    static let sendBytesMax = 64 << 20
    /// How many bytes one read takes from the system.
    static let pieceBytes = 64 << 10
    /// How many reads one call of `receive()` makes before it returns.
    private static let piecesMax = 16
    /// How long a handshake may take if there is another address to try.
    private static let handshakePatience = Duration.seconds(2)

    /// How often a part of a message has come, or a part of a queued one was taken. *Use*: shows that a slow connection
    /// works while no whole message comes.
    public private(set) var stirCount = 0

    /// Opens a client socket.
    ///
    /// - Parameters:
    ///   - kind: The type of the socket.
    ///   - settings: Limits and times.
    /// - Throws: `invalidSetting`.
    public init(
        _ kind: Kind, settings: SocketSettings = SocketSettings()
    ) throws(ZeroMQError) {
        try settings.validate()
        type = kind.type
        self.settings = settings
        pause = ReconnectPause(settings)
        piece = .allocate(byteCount: Self.pieceBytes, alignment: 16)
        super.init()
    }

    deinit {
        drop()
        piece.deallocate()
    }

    /// Sends what is queued, for as long as the linger setting allows, and ends the connection. A further call does
    /// nothing.
    public func close() {
        if case .established(let connection) = phase {
            connection.linger(settings.linger)
            connection.end(piece)
            phase = .closed
        }
        abandon()
        phase = .closed
    }

    /// Drops the current connection and the events that nobody has taken.
    func abandon() {
        drop()
        (events, taken) = ([], 0)
    }

    /// Whether something is queued. The poller wakes the owner when the connection can take more of it.
    public var hasUnsent: Bool {
        if case .established(let connection) = phase { !connection.outbound.isClear } else { false }
    }

    /// Whether `close()` was called.
    public override var isClosed: Bool {
        if case .closed = phase { true } else { false }
    }

    // MARK: For the poller

    override var descriptor: Int32 {
        switch phase {
        case .connecting(let descriptor, _, _): descriptor
        case .shakingHands(let connection, _), .established(let connection):
            connection.descriptor
        case .idle, .lookingUp, .pausing, .closed: -1
        }
    }

    override var signals: Int16 {
        switch phase {
        case .connecting: Int16(POLLOUT)
        case .shakingHands(let connection, _), .established(let connection):
            Int16(connection.outbound.isClear ? POLLIN : POLLIN | POLLOUT)
        case .idle, .lookingUp, .pausing, .closed: 0
        }
    }

    override var isReady: Bool {
        if taken < events.count { return true }
        if case .lookingUp(let lookup) = phase { return lookup.found != nil }
        return false
    }

    override var deadline: Duration? {
        switch phase {
        case .connecting(_, _, let end), .shakingHands(_, let end), .pausing(let end): end
        case .idle, .lookingUp, .established, .closed: nil
        }
    }

    // MARK: Messages

    /// Takes the next message or other event. Call it whenever the poller says that the socket is readable: this call
    /// also connects, and writes what is queued.
    ///
    /// - Returns: The event; nil if there is none. Messages of several frames are discarded and counted in
    ///   `malformedCount`.
    /// - Throws: `closed`.
    public func receive() throws(ZeroMQError) -> ClientEvent? {
        guard !isClosed else { throw .socketClosed }
        var pieces = 0
        while taken == events.count {
            events.removeAll(keepingCapacity: events.capacity <= 4_096)
            taken = 0
            if isDrained {
                isDrained = false
                return nil
            }
            // A peer whose bytes complete no message must not hold up the owner: the poller reports the rest.
            pieces += 1
            guard pieces <= Self.piecesMax, advance() else { return nil }
        }
        defer { taken += 1 }
        return events[taken]
    }

    /// Sends one frame, or queues a copy of it.
    ///
    /// - Parameter frame: The whole frame.
    /// - Returns: The outcome. A missing connection or a full queue is not an error.
    /// - Throws: `closed`.
    public func send(_ frame: Bytes) throws(ZeroMQError) -> SendOutcome {
        guard !isClosed else { throw .socketClosed }
        guard case .established(let connection) = phase,
            connection.outbound.count < settings.sendQueueMessages
        else { return .wouldBlock }
        return frame.withRawBytes { connection.send($0) ? .sent : .wouldBlock }
    }

    /// Sends one frame, or queues a copy of it.
    ///
    /// - Parameter frame: The whole frame.
    /// - Returns: The outcome. A missing connection or a full queue is not an error.
    /// - Throws: `closed`.
    public func send(_ frame: [UInt8]) throws(ZeroMQError) -> SendOutcome { try send(frame[...]) }

    // MARK: Connecting

    /// Does the next step of the current phase.
    ///
    /// - Returns: Whether something was done.
    private func advance() -> Bool {
        switch phase {
        case .idle, .closed: return false
        case .pausing(let end):
            guard let round, Moment.now.monotonic >= end else { return false }
            phase = .lookingUp(Lookup(round.current, waker: waker))
            return true
        case .lookingUp(let lookup):
            switch lookup.found {
            case nil: return false
            case .success(let addresses):
                hostAddressCount = addresses.count
                let first = (round?.failureCount ?? 0) % addresses.count
                connect(Attempt(others: (addresses[first...] + addresses[..<first])[...]))
            case .failure(let failure): fail(failure.failure)
            }
            return true
        case .connecting(let descriptor, let attempt, let end):
            return goOnConnecting(descriptor, attempt, end)
        case .shakingHands(let connection, let end):
            if Moment.now.monotonic >= end {
                fail(connection.decoder.isGreeted ? .ended : .silent)
                return true
            }
            return exchange(connection)
        case .established(let connection): return exchange(connection)
        }
    }

    /// Begins to connect to the first of these addresses that the system accepts.
    private func connect(_ attempt: Attempt) {
        var attempt = attempt
        while let address = attempt.others.popFirst() {
            let descriptor = withUnsafePointer(to: address) {
                conflux_connect($0, settings.keeping)
            }
            if descriptor >= 0 {
                events.append(.connecting)
                // The other addresses must have their turn before the caller stops waiting for a connection.
                let isLast = attempt.others.isEmpty && !hasAlternatives
                let patience = settings.connectTimeout / (isLast ? 1 : 5)
                phase = .connecting(descriptor, attempt, until: Moment.now.monotonic + patience)
                return
            }
            let failure = ConnectionFailure(systemNumber: errno, at: round?.current)
            attempt.failure = attempt.failure ?? failure
        }
        fail(attempt.failure ?? .refused)
    }

    private func goOnConnecting(
        _ descriptor: Int32, _ attempt: Attempt, _ end: Duration
    ) -> Bool {
        var number = conflux_connect_failure(descriptor)
        if number == EINPROGRESS {
            guard Moment.now.monotonic >= end else { return false }
            number = ETIMEDOUT
        }
        guard number == 0 else {
            drop()
            var attempt = attempt
            attempt.failure =
                attempt.failure ?? ConnectionFailure(systemNumber: number, at: round?.current)
            connect(attempt)
            return true
        }
        let connection = ClientConnection(
            descriptor,
            ZMTPDecoder(
                type, messageBytesMax: settings.messageBytesMax,
                curve: settings.security.clientSession(), pool: pool),
            OutboundQueue(
                bytesMax: Self.sendBytesMax, share: OutboundQueue.Share(), budget: budget),
            budget)
        events.append(.accepted)
        let patience =
            hasAlternatives
            ? min(settings.handshakeInterval, Self.handshakePatience) : settings.handshakeInterval
        phase = .shakingHands(connection, until: Moment.now.monotonic + patience)
        connection.say(connection.decoder.greeting)
        return true
    }

    /// Ends the attempt or the connection, and schedules the next attempt.
    private func fail(_ failure: ConnectionFailure) {
        drop()
        guard let failed = round?.current else { return }
        events.append(.failed(failure, at: failed))
        // The other addresses are tried without a pause.
        let isRoundOver = round?.moveOn() ?? true
        phase = .pausing(
            until: isRoundOver ? Moment.now.monotonic + pause.next(after: failure) : .zero)
    }

    /// Drops what there is of a connection, without reporting it.
    private func drop() {
        switch phase {
        case .connecting(let descriptor, _, _): closeDescriptor(descriptor)
        case .shakingHands(let connection, _), .established(let connection):
            connection.end(piece)
        case .idle, .lookingUp, .pausing, .closed: break
        }
        isDrained = false
        phase = .idle
    }

    // MARK: Bytes

    /// Writes what is queued, and reads once.
    ///
    /// - Returns: Whether something was read.
    private func exchange(_ connection: ClientConnection) -> Bool {
        let drainedBytes = connection.outbound.drainedBytes
        guard connection.outbound.write(to: connection.descriptor, atMost: Self.pieceBytes) else {
            return end(connection)
        }
        if connection.outbound.drainedBytes != drainedBytes { stirCount += 1 }
        let direct = connection.decoder.receive(connection.receive)
        let (room, count) = direct ?? (piece.count, connection.receive(piece))
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return false }
            return end(connection)
        }
        // A read that doesn't fill the memory took everything. The poller reports what arrives later.
        isDrained = count < room
        stirCount += 1
        let bytes = UnsafeRawBufferPointer(piece)[..<(direct == nil ? count : 0)]
        take(UnsafeRawBufferPointer(rebasing: bytes), connection)
        return true
    }

    private func end(_ connection: ClientConnection) -> Bool {
        fail(connection.decoder.isGreeted ? .ended : .silent)
        return true
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ connection: ClientConnection) {
        // Otherwise the pool could not reuse the memory of these frames.
        defer { messages.removeAll(keepingCapacity: messages.capacity <= 4_096) }
        var fault: ZMTPFault?
        do throws(ZMTPFault) {
            try connection.decoder.decode(bytes, into: &messages)
        } catch {
            fault = error
        }
        if case .shakingHands = phase { goOnShakingHands(connection) }
        var ping: Bytes?
        for message in messages {
            switch message {
            case .message(let body):
                // Not earlier: a full server ends a connection as soon as it is established.
                pause.reset()
                round?.heard()
                events.append(.message(body))
            case .malformed: malformedCount += 1
            case .ping(let context): ping = context
            case .answer, .identified, .subscription: break
            }
        }
        // One answer is enough, however many pings arrived together.
        if let ping { connection.pong(ping) }
        if let fault { fail(fault.failure) }
    }

    private func goOnShakingHands(_ connection: ClientConnection) {
        for case .answer(let bytes) in messages { connection.say(bytes) }
        guard connection.decoder.isReady else { return }
        phase = .established(connection)
        events.append(.connected)
        if type == .subscriber { _ = ZMTP.subscription.withUnsafeBytes { connection.send($0) } }
    }
}
