import ConfluxProtocol
import ConfluxZeroMQ

/// The addresses of a sequencer: where it listens, and what it tells others.
extension Sequencer {
    /// Without keys, anybody who can reach a port may do anything. So without keys, only local addresses are
    /// accepted.
    static func checkAddresses(
        _ configuration: SequencerConfiguration
    ) throws(SequencerError) {
        guard case .local = configuration.access else { return }
        for text in [configuration.bind, configuration.feed].compactMap({ $0 }) {
            // An invalid address is reported when it is bound.
            guard let endpoint = try? Endpoint(text), !endpoint.isLocal else { continue }
            throw SequencerError(
                code: .insecure,
                message: """
                    \(endpoint) can be reached from other machines, and everybody there might connect. \
                    Give the sequencer a key and say who may connect (conflux keygen, then \
                    --curve-secret and --authorized), bind it to 127.0.0.1, or allow everybody \
                    (--insecure).
                    """)
        }
    }

    /// The endpoint of the feed: the router's next port, or a name derived from its path.
    static func feedEndpoint(
        _ configuration: SequencerConfiguration, router: Endpoint
    ) throws(ZeroMQError) -> Endpoint {
        if let feed = configuration.feed { return try Endpoint(feed) }
        let wished = try Endpoint(configuration.bind)
        switch wished.transport {
        case .tcp(let host, let port):
            guard port < UInt16.max else {
                throw ZeroMQError(
                    .invalidEndpoint,
                    "The feed would have port 65536. Choose a lower port, or give the feed's own.")
            }
            return try Endpoint(host: host, port: port == 0 ? 0 : port + 1)
        case .ipc(let path): return try Endpoint("ipc://\(path).feed")
        }
    }

    /// The address to which other sequencers redirect nodes.
    static func advertised(
        _ configuration: SequencerConfiguration, _ bound: Endpoint
    ) throws(ZeroMQError) -> String {
        guard configuration.storage.isShared else { return "" }
        let address = try configuration.advertise.map { text throws(ZeroMQError) in
            try Endpoint(text)
        }
        let unspecified = ["*", "0.0.0.0", "::"]
        guard let endpoint = address ?? bound as Endpoint?, !endpoint.isWildcard,
            !unspecified.contains(endpoint.host ?? ""), !endpoint.description.contains(" ")
        else {
            throw ZeroMQError(
                .invalidSetting,
                "Other sequencers of this log send nodes here, and \(address ?? bound) is not an "
                    + "address that nodes can connect to. Give one that they can, with "
                    + "--advertise.")
        }
        return endpoint.description
    }

    /// The feed's addresses as the welcome states them: those of relays, and the sequencer's own. Nodes use the host that
    /// they connected to, unless the feed has a host of its own.
    static func announced(
        _ feed: Endpoint, router: Endpoint, relays: [String]
    ) throws(ZeroMQError) -> String {
        var addresses: [String] = []
        for text in relays {
            let relay = try Endpoint(text)
            guard relay.port != 0, !text.contains(" ") else {
                throw ZeroMQError(
                    .invalidEndpoint,
                    "\(relay) is no address of a relay: give one that nodes can connect to.")
            }
            addresses.append(relay.description)
        }
        let isElsewhere = feed.port == nil || feed.host != router.host
        addresses.append(isElsewhere ? feed.description : "tcp://*:\(feed.port ?? 0)")
        let text = addresses.joined(separator: " ")
        guard text.utf8.count <= WireLimits.textBytesMax, addresses.count <= Endpoint.listMax else {
            throw ZeroMQError(
                .invalidSetting,
                """
                \(relays.count) relays are too many: a welcome has room for \(Endpoint.listMax - 1), and for \
                \(WireLimits.textBytesMax) bytes.
                """)
        }
        return text
    }
}
