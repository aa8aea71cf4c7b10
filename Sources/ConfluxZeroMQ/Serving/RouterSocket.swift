import ConfluxVocabulary

/// What a router received.
public enum RouterInput: Sendable, Hashable {
    /// A message of one frame.
    case message(from: RoutingID, body: Bytes)
    /// A message of this many frames, which is nothing that is spoken here. It was thrown away.
    case malformed(from: RoutingID, frames: Int)
    /// A connection has ended. It may be told more than once.
    case ended(RoutingID)

    /// Who sent it, or has gone.
    public var peer: RoutingID {
        switch self {
        case .message(let peer, _), .malformed(let peer, _), .ended(let peer): peer
        }
    }
}

/// The socket that serves many peers, each by its routing id. To its peers it is a `ROUTER`.
///
/// Sending to a peer that is gone, or whose queue is full, is reported and disturbs nobody else.
public final class RouterSocket: ServingSocket {
    /// What the last piece brought and nobody has taken, last first.
    private var inputs: [RouterInput] = []
    /// Connections whose end nobody has been told of.
    private var endings: [RoutingID] = []

    /// For how long a peer may say nothing. Nodes speak more often; who is cut off connects again.
    private static let silenceMax = Duration.seconds(60)
    /// The most bytes that wait for one peer. *At the bound* what is sent to it is lost, as where its
    /// queue has as many messages as it may.
    static let queueBytesMax = 64 << 20
    /// The most bytes that wait for all peers. *At the bound* the same, for those whose key has most.
    static let queuesBytesMax = 256 << 20
    /// How many pieces are taken for one message before the owner has its turn.
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

    /// Takes the next message, if one waits, or the end of a connection.
    ///
    /// - Returns: nil when nothing waits, and after many pieces that completed no message: the
    ///   socket then stays readable.
    /// - Throws: `closed`.
    public func receive() throws(ZeroMQError) -> RouterInput? {
        _ = try open()
        for _ in 0..<Self.piecesMax where inputs.isEmpty {
            guard try receivePiece() else { break }
            inputs.reverse()
        }
        return inputs.popLast() ?? endings.popLast().map { .ended($0) }
    }

    /// Says that a message could not be read. The connection ends once too many could not: what waits
    /// of it is thrown away.
    ///
    /// - Parameter peer: Who sent it.
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

    /// Sends one frame to a peer, or queues it in one copy.
    ///
    /// - Parameters:
    ///   - frame: The whole frame.
    ///   - peer: Whom to send it to.
    /// - Returns: What became of it; neither a full queue nor a peer that is gone is an error.
    /// - Throws: `outOfMemory`, `closed`.
    public func send(_ frame: Bytes, to peer: RoutingID) throws(ZeroMQError) -> SendOutcome {
        try frame.withRawBytes { bytes throws(ZeroMQError) in try sendMessage(bytes, to: peer) }
    }

    /// Sends one frame to a peer, or queues it in one copy.
    ///
    /// - Parameters:
    ///   - frame: The whole frame.
    ///   - peer: Whom to send it to.
    /// - Returns: What became of it; neither a full queue nor a peer that is gone is an error.
    /// - Throws: `outOfMemory`, `closed`.
    public func send(_ frame: [UInt8], to peer: RoutingID) throws(ZeroMQError) -> SendOutcome {
        try send(frame[...], to: peer)
    }
}
