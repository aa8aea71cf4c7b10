import CSockets
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What has happened on a socket that connects.
public enum ClientEvent: Sendable, Hashable {
    /// A connection is being made to an address, or a further one of the host.
    case connecting
    /// Whoever listens has accepted the connection, and has not said yet what it is.
    case accepted
    /// Both sides have said what they are, and who: messages flow. What was sent on the connection before may
    /// be lost.
    case connected
    /// A message of one frame.
    case message(Bytes)
    /// An attempt to connect to this address failed, or the connection ended. The next attempt follows by itself.
    case failed(ConnectionFailure, at: Endpoint)
}

/// The side that connects to a serving socket, and again whenever its connection breaks: to one of several
/// addresses, if it has several (``connect(toAnyOf:)``). It has a socket of the system's own, and speaks ZMTP itself.
///
///     idle ── connect ─▶ looking up ─▶ connecting ─▶ shaking hands ─▶ established
///                            ▲             │               │               │
///                            └── pausing ◀─┴───────────────┴───────────────┘
///
/// Owned by one thread at a time, whose poller says when ``receive()`` has something to do. No call blocks, but
/// closing while something waits to be sent. What is received is bounded by what one call takes from the
/// system, and one message; what waits to be sent, by 64 MiB.
public final class ClientSocket: PolledSocket {
    /// What it is to whom it connects to.
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

    /// What is left of an attempt when the address at hand fails.
    struct Attempt {
        var others: ArraySlice<conflux_address>
        /// Why the first address failed, of those that did.
        var failure: ConnectionFailure?
    }

    private let type: ZMTP.SocketType
    let settings: SocketSettings
    var round: AddressRound?
    var phase = Phase.idle
    private var pause: ReconnectPause
    /// How many addresses the host had when it was looked up last.
    var hostAddressCount = 1
    /// What has happened and nobody has taken, the next one behind `taken`.
    private var events: [ClientEvent] = []
    private var taken = 0
    /// Whether the last piece was all that the system had. *Use*: the system is not asked again before the owner
    /// has been told that nothing waits.
    private var isDrained = false
    private var messages: [ZMTPDecoder.Event] = []
    private let pool = FramePool()
    private let budget = OutboundQueue.Budget(bytesMax: 2 * ClientSocket.sendBytesMax)
    private let piece: UnsafeMutableRawBufferPointer

    /// The most bytes that wait to be sent. *At the bound* what is sent is not queued.
    static let sendBytesMax = 64 << 20
    /// How many bytes are taken from the system at once.
    static let pieceBytes = 64 << 10
    /// How many pieces are taken for one event before the owner has its turn.
    private static let piecesMax = 16
    /// How long a connection may take to say what it is where there is another address to try.
    private static let handshakePatience = Duration.seconds(2)

    /// Opens a socket that connects.
    ///
    /// - Parameters:
    ///   - kind: What it is.
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

    /// Ends the pause between two attempts to connect, if there is one.
    public func endPause() {
        if case .pausing = phase { phase = .pausing(until: .zero) }
    }

    /// Ends the connection; what waits to be sent is sent before, for as long as the linger setting says. Doing
    /// it again does nothing.
    public func close() {
        if case .established(let connection) = phase {
            connection.linger(settings.linger)
            connection.end(piece)
            phase = .closed
        }
        abandon()
        phase = .closed
    }

    /// Gives up the present connection and what has come by it.
    func abandon() {
        drop()
        (events, taken) = ([], 0)
    }

    /// Whether the connection stands.
    public var isConnected: Bool {
        if case .established = phase { true } else { false }
    }

    /// Whether something waits to be sent, for the poller to say when it can be.
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

    /// Takes the next message, or what else has happened. Call it whenever the poller says that the socket is
    /// readable: it also connects, and writes what waits.
    ///
    /// - Returns: nil when nothing waits. Messages of several frames are thrown away and counted in
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
            // Whoever sends much that comes to nothing keeps nobody waiting: the poller tells of the rest.
            pieces += 1
            guard pieces <= Self.piecesMax, advance() else { return nil }
        }
        defer { taken += 1 }
        return events[taken]
    }

    /// Sends one frame, or queues it in one copy.
    ///
    /// - Parameter frame: The whole frame.
    /// - Returns: What became of it; that no connection stands, or that its queue is full, is no error.
    /// - Throws: `closed`.
    public func send(_ frame: Bytes) throws(ZeroMQError) -> SendOutcome {
        guard !isClosed else { throw .socketClosed }
        guard case .established(let connection) = phase,
            connection.outbound.count < settings.sendQueueMessages
        else { return .wouldBlock }
        return frame.withRawBytes { connection.send($0) ? .sent : .wouldBlock }
    }

    /// Sends one frame, or queues it in one copy.
    ///
    /// - Parameter frame: The whole frame.
    /// - Returns: What became of it; that no connection stands, or that its queue is full, is no error.
    /// - Throws: `closed`.
    public func send(_ frame: [UInt8]) throws(ZeroMQError) -> SendOutcome { try send(frame[...]) }

    // MARK: Connecting

    /// Does what is next.
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

    /// Begins to connect to the first of some addresses that the system can reach.
    private func connect(_ attempt: Attempt) {
        var attempt = attempt
        while let address = attempt.others.popFirst() {
            let descriptor = withUnsafePointer(to: address) {
                conflux_connect($0, settings.keeping)
            }
            if descriptor >= 0 {
                events.append(.connecting)
                // Other addresses have their turn while whoever waits for a connection still does.
                let isLast = attempt.others.isEmpty && !hasAlternatives
                let patience = settings.connectTimeout / (isLast ? 1 : 5)
                phase = .connecting(descriptor, attempt, until: Moment.now.monotonic + patience)
                return
            }
            attempt.failure = attempt.failure ?? ConnectionFailure(systemNumber: errno)
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
            attempt.failure = attempt.failure ?? ConnectionFailure(systemNumber: number)
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

    /// The attempt, or the connection, is over. The next one follows.
    private func fail(_ failure: ConnectionFailure) {
        drop()
        guard let failed = round?.current else { return }
        events.append(.failed(failure, at: failed))
        // Other addresses are tried at once.
        let isRoundOver = round?.moveOn() ?? true
        phase = .pausing(
            until: isRoundOver ? Moment.now.monotonic + pause.next(after: failure) : .zero)
    }

    /// Gives up what there is of a connection, without a word.
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

    /// Writes what waits, and reads once.
    ///
    /// - Returns: Whether something was read.
    private func exchange(_ connection: ClientConnection) -> Bool {
        guard connection.outbound.write(to: connection.descriptor, atMost: Self.pieceBytes) else {
            return end(connection)
        }
        let count = conflux_receive(connection.descriptor, piece.baseAddress, piece.count)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return false }
            return end(connection)
        }
        // What fits leaves nothing behind; if something has come meanwhile the poller says so.
        isDrained = count < piece.count
        take(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(piece)[..<count]), connection)
        return true
    }

    private func end(_ connection: ClientConnection) -> Bool {
        fail(connection.decoder.isGreeted ? .ended : .silent)
        return true
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ connection: ClientConnection) {
        // Else the last frames' memory could not be used again.
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
                // Not before: a server that is full ends a connection as soon as it stands.
                pause.reset()
                round?.heard()
                events.append(.message(body))
            case .malformed: malformedCount += 1
            case .ping(let context): ping = context
            case .answer, .identified, .subscription: break
            }
        }
        // One answer says that this side lives, however many came at once.
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
