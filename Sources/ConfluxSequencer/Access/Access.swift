import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Decides who may connect to the sequencer's sockets, and which parts of the feed each peer may observe. The
/// machine decides what a peer may do; this type filters the frames that leave. Confined to one thread.
struct Access {
    /// The keys that may connect; nil if the sequencer uses no keys.
    private var authorized: AuthorizedKeys?
    /// The sequencer's own public key. Whoever connects to the feed with it is a relay. It gets everything, since it is
    /// a part of the sequencer: nodes take what it sends for the sequencer's.
    private let own: CurvePublicKey?
    /// The barred keys, and the time until which they may not connect.
    private var barred: [Name: Duration] = [:]

    /// One key may have at most this fraction of a socket's connections, unless the key's line sets a number.
    static let keyFraction = 8
    /// A client can ask for a reload that changes or removes its own key. Its connections end after this
    /// time.
    static let answerDelay = Duration.seconds(1)

    init(own: CurvePublicKey?) { self.own = own }

    /// Replaces the authorised keys. Connections whose keys are not among them end. If a key's rights have
    /// changed, its connections end as well, so that the peer reconnects and repeats what it needs.
    ///
    /// The connections of the client that asked for the reload end later, since the answer to it may still be
    /// on the way. They have the new rights at once: if the key is gone, nothing more is received from them
    /// or sent to them.
    ///
    /// - Parameters:
    ///   - keys: The keys.
    ///   - asker: The key of the client that asked for the reload, if one did.
    ///   - sockets: The sockets that clients connect to.
    /// - Throws: `closed`.
    mutating func admit(
        _ keys: AuthorizedKeys, askedBy asker: CurvePublicKey? = nil, on sockets: [ServingSocket]
    ) throws(ZeroMQError) {
        let former = authorized
        authorized = keys
        // With new rights, a barred key gets another chance.
        barred = [:]
        for socket in sockets {
            admitConnections(on: socket)
            try socket.end { $0 != asker && former?[$0] != keys[$0] }
            try socket.end(after: Self.answerDelay) { $0 == asker && former?[$0] != keys[$0] }
        }
    }

    /// Makes the socket admit only authorised keys, each with no more connections than it may have.
    private func admitConnections(on socket: ServingSocket) {
        let share = max(1, socket.levels.connections.most / Self.keyFraction)
        let relay = socket is PublisherSocket ? own : nil
        socket.connectionsMax = { [authorized, barred] key in
            if key == relay { return share }
            guard let principal = authorized?[key] else { return nil }
            if let until = principal.name.flatMap({ barred[$0] }), Moment.now.monotonic < until {
                return 0
            }
            return principal.rights.connectionsMax.map { Int($0) } ?? share
        }
    }

    /// Ends the connections of a key, and admits none for a while.
    ///
    /// - Parameters:
    ///   - name: The key's name.
    ///   - pause: The minimum time for which the key is barred.
    ///   - sockets: The sockets that clients connect to.
    /// - Throws: `closed`.
    mutating func bar(
        _ name: Name, for pause: Duration, on sockets: [ServingSocket]
    ) throws(ZeroMQError) {
        let now = Moment.now.monotonic
        barred = barred.filter { $0.value > now }
        barred[name] = now + pause
        for socket in sockets {
            admitConnections(on: socket)
            try socket.end { authorized?[$0]?.name == name }
        }
    }

    /// The peer on a connection.
    ///
    /// - Parameter key: The connection's key; nil if the connection is gone or not encrypted.
    /// - Returns: The principal; nil if the key is not authorised.
    func principal(of key: CurvePublicKey?) -> Principal? {
        guard let authorized else { return .anybody }
        return key.flatMap { authorized[$0] }
    }

    /// Publishes a frame. Each subscriber gets the part of it that its key may observe.
    func publish(_ frame: Bytes, on feed: PublisherSocket) throws(ZeroMQError) {
        guard let authorized else {
            try feed.send(frame)
            return
        }
        var views: [Rights: Bytes?] = [:]
        try feed.send { key in
            if key == own { return frame }
            guard let rights = key.flatMap({ authorized[$0] })?.rights else { return nil }
            if rights.allowReadingAll { return frame }
            if let view = views[rights] { return view }
            let view = rights.visible(frame: frame)
            views[rights] = .some(view)
            return view
        }
    }
}
