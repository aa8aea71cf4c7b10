import ConfluxVocabulary

/// Where a socket connects to.
extension ClientSocket {
    /// Begins to connect, and connects again whenever the connection breaks.
    ///
    /// - Parameter endpoint: Whereto; it need not be there yet.
    /// - Throws: `invalidEndpoint` for `*` and port 0; `closed`.
    public func connect(_ endpoint: Endpoint) throws(ZeroMQError) {
        try connect(toAnyOf: [endpoint])
    }

    /// Begins to connect to the first of some addresses, and to the next one whenever that fails.
    ///
    /// - Parameter endpoints: Whereto, one at least; nobody need be there yet.
    /// - Throws: `invalidEndpoint` for `*`, port 0, and no address; `closed`.
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

    /// Where it is connected, or connects to next; nil before it was told.
    public var endpoint: Endpoint? { round?.current }

    /// Gives up the present connection and connects to this address, at once. Where that fails, the addresses that it
    /// was given have their turn again.
    ///
    /// - Parameter endpoint: Whereto.
    /// - Throws: `invalidEndpoint` for `*` and port 0; `closed`.
    public func move(to endpoint: Endpoint) throws(ZeroMQError) {
        guard !isClosed else { throw .socketClosed }
        try endpoint.requireConnectable()
        guard round != nil else { return try connect(endpoint) }
        abandon()
        round?.follow(endpoint)
        phase = .pausing(until: .zero)
    }

    /// Gives up the present connection, or the attempt at it, and continues with the next address; does nothing where
    /// there is none but the present one, or a pause is under way: no pause is cut short.
    public func moveOn() {
        guard hasAlternatives, !isClosed else { return }
        if case .pausing = phase { return }
        abandon()
        let isRoundOver = round?.moveOn() ?? true
        phase = .pausing(
            until: isRoundOver ? Moment.now.monotonic + settings.reconnectInterval : .zero)
    }

    /// Whether there is an address to try but the present one. That a host has several is known once it was looked up.
    var hasAlternatives: Bool {
        hostAddressCount > 1 || round.map { $0.addresses != [$0.current] } ?? false
    }
}
