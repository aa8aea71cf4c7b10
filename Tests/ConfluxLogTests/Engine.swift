import ConfluxEtcd
import ConfluxLog
import EtcdCluster
import Foundation
import Testing

/// The engines of logs.
enum Engine: CaseIterable {
    case memory, fsync, os, etcd

    /// The engines that this machine has.
    static var allCases: [Engine] {
        [.memory, .fsync, .os] + (EtcdCluster.isInstalled ? [.etcd] : [])
    }

    /// An empty log.
    func open(_ folder: TemporaryFolder) throws -> any ActionLog {
        switch self {
        case .memory: return MemoryLog()
        case .fsync: return try SQLiteLog(directory: folder.path, settings: .small(.fsync))
        case .os: return try SQLiteLog(directory: folder.path, settings: .small(.os))
        case .etcd:
            let name = (folder.path as NSString).lastPathComponent
            let text = try EtcdCluster.shared.get().address(name)
            return try EtcdLog(EtcdLogSettings(address: try #require(EtcdAddress(text))))
        }
    }

    /// A log that has ten commits: 1–2, 3–4 … 19–20.
    func make(_ folder: TemporaryFolder, commits: Int = 10, bytes: Int = 10) throws -> any ActionLog
    {
        let log = try open(folder)
        try log.fill(commits, bytes: bytes)
        return log
    }
}
