import ConfluxVocabulary

/// The addresses that a socket connects to.
extension ClientSocket {
    /// Begins to connect, and reconnects whenever the connection breaks.
    ///
    /// - Parameter endpoint: The address. Nobody has to listen there yet.
    /// - Throws: `invalidEndpoint` for `*` and port 0; `closed`.
    public func connect(_ endpoint: Endpoint) throws(ZeroMQError) {
        try connect(toAnyOf: [endpoint])
    }

    /// Begins to connect to the first of several addresses, and moves on to the next one after each
    /// failure.
    ///
    /// - Parameter endpoints: The addresses, at least one. Nobody has to listen there yet.
    /// - Throws: `invalidEndpoint` for `*`, for port 0, and if there is no address; `closed`.
    public func connect(toAnyOf endpoints: [Endpoint]) throws(ZeroMQError) {
        guard !isClosed else { throw .socketClosed }
        guard !endpoints.isEmpty else {
            throw ZeroMQError(.invalidEndpoint, "There is no address to connect to. Give one.")
        }
        for endpoint in endpoints { try endpoint.requireConnectable() }
        abandon()
        round = AddressRound(endpoints)
        phase = .pausing(until: .zero)
    }

    /// The address that the socket is connected to, or connects to next; nil before the first
    /// `connect`.
    public var endpoint: Endpoint? { round?.current }

    /// Drops the current connection, and connects to this address at once. If that fails, the socket goes on with the
    /// addresses that it was given before.
    ///
    /// - Parameter endpoint: The address.
    /// - Throws: `invalidEndpoint` for `*` and port 0; `closed`.
    public func move(to endpoint: Endpoint) throws(ZeroMQError) {
        guard !isClosed else { throw .socketClosed }
        try endpoint.requireConnectable()
        guard round != nil else { return try connect(endpoint) }
        abandon()
        round?.follow(endpoint)
        phase = .pausing(until: .zero)
    }

    /// Drops the current connection, or the attempt to connect, and continues with the next address. Does nothing if
    /// there is no other address, or during a pause: a pause is never cut short.
    public func moveOn() {
        guard hasAlternatives, !isClosed else { return }
        if case .pausing = phase { return }
        abandon()
        let isRoundOver = round?.moveOn() ?? true
        phase = .pausing(
            until: isRoundOver ? Moment.now.monotonic + settings.reconnectInterval : .zero)
    }

    /// Ends the pause between two attempts to connect, if there is one.
    public func endPause() {
        if case .pausing = phase { phase = .pausing(until: .zero) }
    }

    /// Whether the connection is established.
    public var isConnected: Bool {
        if case .established = phase { true } else { false }
    }

    /// Whether there is another address to try. Whether a host has several is known only after it was looked up.
    var hasAlternatives: Bool {
        hostAddressCount > 1 || round.map { $0.addresses != [$0.current] } ?? false
    }
}
