/// What does the work of a stream.
enum Rival: Hashable, CustomStringConvertible {
    case conflux
    /// Plain libzmq, with this many actions in a frame.
    case partner(frameActions: Int)
    /// A third-party server, with this many actions in an entry.
    case peer(PeerKind, entryActions: Int)

    var description: String {
        switch self {
        case .conflux: "Conflux"
        case .partner(let actions): "C over libzmq, \(actions) a frame"
        case .peer(let kind, let actions):
            (kind == .redis
                ? "Redis Streams, fsync always, " : "NATS JetStream in files, no fsync, ")
                + (actions == 1 ? "an action an entry" : "\(actions) packed by hand")
        }
    }

    /// A short name, for pictures.
    var name: String {
        switch self {
        case .conflux: "Conflux"
        case .partner: "C over libzmq"
        case .peer(.redis, _): "Redis Streams (fsync)"
        case .peer(.nats, _): "NATS JetStream (no fsync)"
        }
    }

    /// The servers that are installed, and that this program can use.
    static var installedPeers: [PeerKind] {
        PeerRoles.arePlayed
            ? PeerKind.allCases.filter { PeerServer.program(of: $0) != nil } : []
    }

    /// Starts all processes of a stream.
    func cast(_ stream: StreamWorkload, in cluster: Cluster) throws -> StreamWorkload.Cast {
        switch self {
        case .conflux: return try stream.cast(.conflux, in: cluster)
        case .partner(let frameActions):
            return try stream.cast(.partner, in: cluster, frameActions: frameActions)
        case .peer(let kind, let entryActions):
            let place = try cluster.startServer(kind)
            return StreamWorkload.Cast(
                watching: try (0..<stream.replicas).map { _ in
                    try cluster.start(.peerReplica(at: place, count: stream.count))
                },
                sending: try (0..<stream.producers).map { producer in
                    try cluster.start(
                        .peerProducer(
                            at: place, producer: producer, count: stream.share(of: producer),
                            entryActions: entryActions))
                })
        }
    }
}
