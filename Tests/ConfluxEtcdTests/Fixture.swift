import ConfluxEtcd
import ConfluxLog
import ConfluxVocabulary
import EtcdCluster
import Foundation
import Testing

/// Opens a log with a prefix.
func open(
    _ cluster: EtcdCluster, _ prefix: String = "conflux",
    _ adjust: (inout EtcdLogSettings) -> Void = { _ in }
) throws -> EtcdLog {
    try open(cluster.address(prefix), adjust)
}

func open(
    _ address: String, _ adjust: (inout EtcdLogSettings) -> Void = { _ in }
) throws -> EtcdLog {
    var settings = EtcdLogSettings(address: try #require(EtcdAddress(address)))
    adjust(&settings)
    return try EtcdLog(settings)
}

/// A new prefix in the cluster that the tests share.
func ownPrefix() -> String { "test-\(Identifier.random())" }

/// A cluster with this number of members.
func cluster(
    of count: Int, _ arguments: [String] = [], secure: (server: [String], client: [String])? = nil
) throws -> EtcdCluster {
    var options = EtcdCluster.Options()
    options.memberCount = count
    options.arguments = arguments
    options.secure = secure
    return try EtcdCluster(options)
}

/// The error that a function threw, and how long it took.
func failure(_ body: () throws -> Void) -> (error: LogError?, time: Duration) {
    let begun = ContinuousClock.now
    do {
        try body()
        return (nil, ContinuousClock.now - begun)
    } catch {
        return (error as? LogError, ContinuousClock.now - begun)
    }
}

extension LoggedCommit {
    static func sample(
        _ first: UInt64, _ epoch: Epoch, entries: UInt64 = 2, bytes: Int = 10
    ) -> LoggedCommit {
        let contents = (0..<bytes).map { UInt8(truncatingIfNeeded: UInt64($0) &* 7 &+ first) }
        return LoggedCommit(
            first: SequenceNumber(first), last: SequenceNumber(first + entries - 1), epoch: epoch,
            bytes: contents[...])
    }
}

extension ActionLog {
    /// Appends commits of two entries each, one after the other.
    @discardableResult
    func fill(_ count: Int, _ epoch: Epoch, bytes: Int = 10) throws -> [LoggedCommit] {
        try (0..<count).map { _ in
            let commit = LoggedCommit.sample(last.rawValue + 1, epoch, bytes: bytes)
            try append(commit, expecting: last, forced: false)
            return commit
        }
    }

    /// Like a sequencer: repeats exactly the same append while its outcome is unknown.
    func insist(_ commit: LoggedCommit, within limit: Duration = .seconds(60)) throws {
        let deadline = ContinuousClock.now + limit
        let end = last
        while true {
            do {
                return try append(commit, expecting: end, forced: false)
            } catch {
                let passes: Set<LogError.Code> = [.unknownOutcome, .unreachable, .failed]
                guard passes.contains(error.code), ContinuousClock.now < deadline else {
                    throw error
                }
            }
        }
    }

    func readAll() throws -> [LoggedCommit] {
        var commits: [LoggedCommit] = []
        var next = SequenceNumber(1)
        while true {
            let more = try read(from: next, limitBytes: 1 << 20)
            guard let end = more.last?.last else { return commits }
            commits += more
            next = end.next
        }
    }

    func save(checkpointAt number: UInt64, bytes: Int = 100) throws {
        let contents = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: bytes)
        let checkpoint = SavedCheckpoint(sequence: SequenceNumber(number), bytes: contents[...])
        for piece in checkpoint.pieces() { try save(piece) }
    }

    func truncateAll(below floor: UInt64) throws {
        while try !truncate(below: SequenceNumber(floor), limitBytes: 1 << 20) {}
    }
}
