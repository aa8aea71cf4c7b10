import Foundation

/// How a workload's log is kept.
enum Durability: String, Codable, Sendable, CaseIterable {
    /// On the disk before anything is visible.
    case fsync
    /// Not at all.
    case memory
}

/// The processes of one measurement. Whatever happens, all of them are ended and the folder of
/// the log is removed.
final class Cluster {
    private var children: [Child] = []
    private var servers: [PeerServer] = []
    private let folder: URL

    private init(in parent: URL) throws {
        folder = parent.appendingPathComponent("conflux-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    /// Runs a measurement.
    static func run<Result>(
        in parent: URL, _ body: (Cluster) throws -> Result
    ) throws -> Result {
        let cluster = try Cluster(in: parent)
        let result = Swift.Result { try body(cluster) }
        for child in cluster.children { child.end() }
        for server in cluster.servers { server.end() }
        try FileManager.default.removeItem(at: cluster.folder)
        return try result.get()
    }

    func start(_ role: Role) throws -> Child {
        let child = try Child(role)
        children.append(child)
        return child
    }

    /// Starts a server that others wrote, and waits until it serves.
    func startServer(_ kind: PeerKind) throws -> PeerPlace {
        let server = try PeerServer(kind, folder: path("log"))
        servers.append(server)
        return server.place
    }

    /// A file, or a folder, that lives as long as the measurement.
    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// Starts a sequencer that is ordered about, and waits until it serves.
    func startKeeper(
        _ settings: KeeperSettings, log: String = "log"
    ) throws -> (child: Child, address: String, feed: String) {
        let child = try start(.keeper(folder: path(log), settings))
        guard case .listening(let addresses) = try child.next() else {
            throw BenchError("the sequencer does not listen")
        }
        return (child, addresses[0], addresses[1])
    }

    /// Any free port of the loopback interface.
    static let loopback = "tcp://127.0.0.1:0"

    /// Starts a sequencer, and waits until it has its addresses.
    func startSequencer(
        _ side: Side, _ durability: Durability, zeroedBytes: Int, subscribers: Int,
        bind: String = loopback, keys: KeyRing? = nil
    ) throws -> (child: Child, addresses: [String]) {
        let log = durability == .fsync ? folder.appendingPathComponent("log").path : nil
        let child = try start(
            side == .conflux
                ? .sequencer(bind: bind, folder: log, keys: keys)
                : .partnerSequencer(
                    path: log, zeroedBytes: log == nil ? 0 : zeroedBytes,
                    subscribers: subscribers))
        guard case .listening(let addresses) = try child.next() else {
            throw BenchError("the sequencer does not listen")
        }
        return (child, addresses)
    }
}

/// Whose turn it is.
enum Side: CaseIterable {
    case conflux
    case partner
}
