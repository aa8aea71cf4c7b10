import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Who speaks on the sequencer's connections, and what each may hear. What somebody may do the machine
/// decides; what somebody may observe is decided here, where frames leave. Confined to one thread.
struct Access {
    /// Who may connect; nil if there are no keys.
    private var authorized: AuthorizedKeys?
    /// Until when keys may not connect.
    private var barred: [Name: Duration] = [:]

    /// Which part of all connections of a socket the processes of one key may have, unless its line says
    /// how many.
    static let keyFraction = 8
    /// How long the connections of a client continue that had the keys read again, where its own key is
    /// changed or gone.
    static let answerDelay = Duration.seconds(1)

    /// From here on these keys may connect, and no others are connected. Whose rights are others now
    /// connects again, and says anew what it does.
    ///
    /// The connections of a client that asked for it end later, since its answer may be on the way. They
    /// have the new rights meanwhile: where the key is gone, nothing more is heard or sent.
    ///
    /// - Parameters:
    ///   - keys: The keys.
    ///   - asker: The key of whoever asked for it, if a client did.
    ///   - sockets: Where they connect.
    /// - Throws: `closed`.
    mutating func admit(
        _ keys: AuthorizedKeys, askedBy asker: CurvePublicKey? = nil, on sockets: [ServingSocket]
    ) throws(ZeroMQError) {
        let former = authorized
        authorized = keys
        // With its rights a key gets another chance.
        barred = [:]
        for socket in sockets {
            admitConnections(on: socket)
            try socket.end { $0 != asker && former?[$0] != keys[$0] }
            try socket.end(after: Self.answerDelay) { $0 == asker && former?[$0] != keys[$0] }
        }
    }

    /// From here on the socket admits connections of the keys that may connect, as many as each may have.
    private func admitConnections(on socket: ServingSocket) {
        let share = max(1, socket.levels.connections.most / Self.keyFraction)
        socket.connectionsMax = { [authorized, barred] key in
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
    ///   - pause: For how long, at the least.
    ///   - sockets: Where it connects.
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

    /// Who speaks on a connection.
    ///
    /// - Parameter key: The connection's key; nil if it is gone, or not encrypted.
    /// - Returns: Who; nil for nobody who may.
    func principal(of key: CurvePublicKey?) -> Principal? {
        guard let authorized else { return .anybody }
        return key.flatMap { authorized[$0] }
    }

    /// Publishes a frame: to each subscriber what of it its key may observe.
    func publish(_ frame: Bytes, on feed: PublisherSocket) throws(ZeroMQError) {
        guard let authorized else {
            try feed.send(frame)
            return
        }
        var views: [Rights: Bytes?] = [:]
        try feed.send { key in
            guard let rights = key.flatMap({ authorized[$0] })?.rights else { return nil }
            if rights.allowReadingAll { return frame }
            if let view = views[rights] { return view }
            let view = rights.visible(frame: frame)
            views[rights] = .some(view)
            return view
        }
    }
}
