import ConfluxVocabulary

/// What a router received.
public enum RouterInput: Sendable, Hashable {
    /// A message of one frame.
    case message(from: RoutingID, body: Bytes)
    /// A message of this many frames, which no peer should send. It was discarded.
    case malformed(from: RoutingID, frames: Int)
    /// A connection has ended. This may be reported more than once.
    case ended(RoutingID)

    /// The peer that sent it, or whose connection ended.
    public var peer: RoutingID {
        switch self {
        case .message(let peer, _), .malformed(let peer, _), .ended(let peer): peer
        }
    }
}

/// The socket that serves many peers, each identified by its routing id. To its peers it is a
/// `ROUTER`.
///
/// If a peer is gone, or its queue is full, sending to it reports that, and affects no other peer.
public final class RouterSocket: ServingSocket {
    /// What the last piece brought and `receive()` has yet to return, in reverse order.
    private var inputs: [RouterInput] = []
    /// Connections whose end `receive()` has yet to report.
    private var endings: [RoutingID] = []

    /// How long a peer may be silent. Nodes send more often than that; a peer that is cut off
    /// connects again.
    private static let silenceMax = Duration.seconds(60)
    /// The most bytes that may be queued for one peer. *At the bound* what is sent to it is lost, just like when its
    /// queue has the most messages.
    static let queueBytesMax = 64 << 20
    /// The most bytes that may be queued for one peer before it gets a long answer. The rest is for short messages, and
    /// for answers that it has asked for already.
    static let answersBytesMax = 32 << 20
    /// The most bytes that may be queued for all peers. *At the bound* what is sent to the peers whose key has most
    /// queued is lost.
    static let queuesBytesMax = 256 << 20
    /// How many pieces one call of `receive()` takes before it returns.
    private static let piecesMax = 16

    /// Opens a router.
    ///
    /// - Parameter settings: Limits and times.
    /// - Throws: `invalidSetting`, `tooManyOpen`.
    public init(settings: SocketSettings = SocketSettings()) throws(ZeroMQError) {
        try super.init(
            as: .router, settings: settings, silenceMax: Self.silenceMax,
            outboundBytesMax: OutboundQueue.Limits(
                connection: Self.queueBytesMax, all: Self.queuesBytesMax))
    }

    /// Takes the next message or end of a connection.
    ///
    /// - Returns: What was received; nil if there is nothing, and also after many pieces that
    ///   completed no message: then the socket stays readable.
    /// - Throws: `closed`.
    public func receive() throws(ZeroMQError) -> RouterInput? {
        _ = try open()
        for _ in 0..<Self.piecesMax where inputs.isEmpty {
            guard try receivePiece() else { break }
            inputs.reverse()
        }
        return inputs.popLast() ?? endings.popLast().map { .ended($0) }
    }

    /// Reports that a message of a peer is unreadable. After too many of them the connection ends, and its messages
    /// that nobody has taken are discarded.
    ///
    /// - Parameter peer: The peer that sent it.
    /// - Throws: `closed`.
    public func refuse(_ peer: RoutingID) throws(ZeroMQError) {
        try countRefusal(of: peer)
        guard hasEnded(peer) else { return }
        inputs.removeAll { $0.peer == peer }
    }

    override var hasTakenInput: Bool { !inputs.isEmpty || !endings.isEmpty }

    override func ended(_ id: RoutingID) { endings.append(id) }

    override func take(_ event: ZMTPDecoder.Event, from id: RoutingID) {
        switch event {
        case .message(let body): inputs.append(.message(from: id, body: body))
        case .malformed(let frames):
            malformedCount += 1
            inputs.append(.malformed(from: id, frames: frames))
        case .answer, .identified, .ping, .subscription: break
        }
    }

    /// Whether a peer has read so much of what was sent to it that it may ask for more (rule 40).
    public func hasRoomForAnswers(to peer: RoutingID) -> Bool {
        queue(of: peer)?.hasRoom(below: Self.answersBytesMax) ?? true
    }

    /// Sends one frame to a peer, or queues a copy of it.
    ///
    /// - Parameters:
    ///   - frame: The whole frame.
    ///   - peer: The peer to send it to.
    /// - Returns: The outcome. Neither a full queue nor a peer that is gone is an error.
    /// - Throws: `outOfMemory`, `closed`.
    public func send(_ frame: Bytes, to peer: RoutingID) throws(ZeroMQError) -> SendOutcome {
        try frame.withRawBytes { bytes throws(ZeroMQError) in try sendMessage(bytes, to: peer) }
    }

    /// Sends one frame to a peer, or queues a copy of it.
    ///
    /// - Parameters:
    ///   - frame: The whole frame.
    ///   - peer: The peer to send it to.
    /// - Returns: The outcome. Neither a full queue nor a peer that is gone is an error.
    /// - Throws: `outOfMemory`, `closed`.
    public func send(_ frame: [UInt8], to peer: RoutingID) throws(ZeroMQError) -> SendOutcome {
        try send(frame[...], to: peer)
    }
}
