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
            "\(kind.log), " + (actions == 1 ? "an action an entry" : "\(actions) packed by hand")
        }
    }

    /// What part of the actions is enough: a server that syncs each message by itself would take minutes for all of them.
    var slowness: Int { self == .peer(.syncedNATS, entryActions: 1) ? 20 : 1 }

    /// A short name, for pictures.
    var name: String {
        switch self {
        case .conflux: "Conflux"
        case .partner: "C over libzmq"
        case .peer(let kind, _): kind.shortName
        }
    }

    /// The servers that are installed, and that this program can use.
    static func installedPeers() throws -> [PeerKind] {
        guard PeerRoles.arePlayed else { return [] }
        return try PeerKind.allCases.filter { try PeerServer.obstacle(to: $0) == nil }
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
