import ConfluxZeroMQ

/// One of the two ways between a node and its sequencer. Each has an address and a connection of its own, and can fail
/// alone.
enum Way: Sendable {
    /// Requests and their answers.
    case requests
    /// The feed.
    case feed
}

/// What an event of a connection says about the way to the sequencer, in words that name the address and what to do.
struct WayFinding: Sendable, Hashable {
    /// What was found.
    let message: String
    /// The address.
    let endpoint: Endpoint
    /// Whether the attempt has ended, and did not only begin.
    let isFailure: Bool
    /// Whether another attempt can't succeed before somebody changes something.
    let isFinal: Bool

    /// Makes the finding of an event; nil if it shows nothing of the way, or if the keys are the reason: see
    /// ``RefusedConnections``.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - endpoint: The address of the connection.
    ///   - way: The way that the connection belongs to.
    init?(_ event: ClientEvent, of endpoint: Endpoint, way: Way) {
        switch event {
        case .connecting:
            self.init(Self.unreachable("Connection timed out", endpoint, way), endpoint)
        case .accepted: self.init(Self.silent(endpoint, way), endpoint)
        case .connected where way == .requests: self.init(Self.silentRouter(endpoint), endpoint)
        case .connected: self.init(Self.strangeFeed(endpoint), endpoint)
        case .failed(let failure, let endpoint):
            guard let message = Self.message(failure, endpoint, way) else { return nil }
            self.init(
                message, endpoint, isFailure: true, isFinal: Self.isFinal(failure))
        case .message: return nil
        }
    }

    private init(
        _ message: String, _ endpoint: Endpoint, isFailure: Bool = false, isFinal: Bool = false
    ) {
        self.message = message
        self.endpoint = endpoint
        self.isFailure = isFailure
        self.isFinal = isFinal
    }

    private static func isFinal(_ failure: ConnectionFailure) -> Bool {
        switch failure {
        case .unresolvable, .refused, .stranger, .otherSocket, .broken: true
        // A network, a stopped process or a crowded one may recover.
        case .unreachable, .hindered, .silent, .otherMechanism, .denied, .ended: false
        }
    }

    private static func message(
        _ failure: ConnectionFailure, _ endpoint: Endpoint, _ way: Way
    ) -> String? {
        switch failure {
        case .unresolvable(let reason):
            "The host of \(endpoint)\(of(way)) has no address (\(reason)). Check the name."
        case .refused where way == .feed:
            """
            Nothing listens at \(endpoint), an address of the feed. If it is the sequencer's own, publish its port as \
            well, or give the sequencer the address that nodes can reach (--feed). If it is a relay's, start the relay.
            """
        case .refused:
            """
            Nothing listens at \(endpoint). Start a sequencer there (conflux sequencer --bind \
            \(endpoint)), or check the port.
            """
        case .unreachable(let reason): unreachable(reason, endpoint, way)
        case .hindered(let reason): "\(endpoint)\(of(way)) can't be reached: \(reason)"
        case .silent: silent(endpoint, way)
        case .stranger, .broken:
            "The server at \(endpoint)\(of(way)) is not a sequencer. Check the port."
        case .otherSocket where way == .feed: strangeFeed(endpoint)
        case .otherSocket:
            """
            \(endpoint) is not a sequencer's address. It may be its feed's: connect to the address that \
            the sequencer's ready line shows.
            """
        case .otherMechanism, .denied, .ended: nil
        }
    }

    private static func of(_ way: Way) -> String {
        way == .feed ? ", an address of the feed," : ""
    }

    private static func unreachable(
        _ reason: String, _ endpoint: Endpoint, _ way: Way
    ) -> String {
        """
        \(endpoint)\(of(way)) can't be reached (\(reason)). Check the address, the network and \
        firewalls.
        """
    }

    static func silent(_ endpoint: Endpoint, _ way: Way = .requests) -> String {
        """
        Something listens at \(endpoint)\(of(way)) but does not answer. It is not a sequencer, or it \
        is stopped, cut off, or at its limit of connections. Check the port, the process and the \
        network.
        """
    }

    static func stopped(_ endpoint: Endpoint) -> String {
        """
        The sequencer at \(endpoint) does not answer any more, although the connection stands. It is \
        stopped, busy or cut off. Check the process and the network.
        """
    }

    private static func silentRouter(_ endpoint: Endpoint) -> String {
        """
        The sequencer at \(endpoint) accepts connections, but does not answer in time: it reads its log, is \
        busy, or has no place for another connection. See what it prints, and its metrics.
        """
    }

    private static func strangeFeed(_ endpoint: Endpoint) -> String {
        """
        What comes from \(endpoint) is not the feed of this node's sequencer. Another sequencer may \
        have that address, or something between the two does not pass the feed on. Check --feed, \
        the port and proxies.
        """
    }
}

/// What keeps a node from one of the two ways, for as long as that lasts.
struct WayTrouble {
    let way: Way
    /// Why the connection fails, or could; nil if nothing is known.
    private(set) var message: String?
    /// Whether the last attempt to connect failed.
    private var isFailure = false
    private var told: String?

    init(_ way: Way) { self.way = way }

    /// Takes an event of the connection.
    mutating func take(_ event: ClientEvent, of endpoint: Endpoint) {
        if case .failed(let failure, let address) = event,
            let reason = RefusedConnections.reason(failure, address), failure.isOfKeys
        {
            (message, isFailure) = (reason, true)
        } else if let finding = WayFinding(event, of: endpoint, way: way) {
            // An attempt that has only begun says less than what the last one found.
            if event == .connecting, message != nil { return }
            (message, isFailure) = (finding.message, finding.isFailure)
        }
    }

    /// Notes that nothing comes any more, although the connection stands.
    mutating func fallSilent(_ endpoint: Endpoint) {
        message = message ?? WayFinding.stopped(endpoint)
        isFailure = true
    }

    /// Takes note that the trouble is reported.
    ///
    /// - Parameter isSilent: Whether it is known that nothing comes, although the connection did not fail.
    /// - Returns: What to report; nil if that was reported last.
    mutating func tell(isSilent: Bool = false) -> String? {
        guard isFailure || isSilent, let message, message != told else { return nil }
        told = message
        return message
    }

    /// Notes that the way works.
    mutating func works() { (message, isFailure, told) = (nil, false, nil) }
}
