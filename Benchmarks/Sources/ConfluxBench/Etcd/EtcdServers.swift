import Foundation

/// An etcd of several members, each in its own process, with their files on the disk of the benchmark's folder.
final class EtcdServers {
    /// The addresses for clients.
    let addresses: [String]
    private let folder: URL
    private var processes: [Process] = []

    static let program = ["/usr/bin/etcd", "/usr/local/bin/etcd", "/opt/homebrew/bin/etcd"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    init(_ count: Int, in parent: URL) throws {
        guard let program = Self.program else {
            throw BenchError("etcd is not installed; run script/bootstrap --etcd")
        }
        folder = parent.appendingPathComponent("conflux-bench-etcd-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let ports = try (0..<2 * count).map { _ in try PeerServer.freePort() }
        addresses = ports.prefix(count).map { "127.0.0.1:\($0)" }
        let peers = ports.suffix(count).map { "http://127.0.0.1:\($0)" }
        let cluster = peers.enumerated().map { "m\($0.offset)=\($0.element)" }
        for (index, peer) in peers.enumerated() {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: program)
            process.arguments = [
                "--name", "m\(index)", "--data-dir", "\(folder.path)/m\(index)",
                "--listen-client-urls", "http://\(addresses[index])", "--advertise-client-urls",
                "http://\(addresses[index])", "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster",
                cluster.joined(separator: ","), "--initial-cluster-state", "new", "--log-level",
                "error",
            ]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            processes.append(process)
        }
    }

    /// Ends the processes, and removes their files.
    func end() throws {
        for process in processes where process.isRunning {
            kill(process.processIdentifier, SIGKILL)
        }
        for process in processes { process.waitUntilExit() }
        try FileManager.default.removeItem(at: folder)
    }
}
