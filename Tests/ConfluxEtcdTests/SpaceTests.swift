import ConfluxEtcd
import ConfluxHashing
import ConfluxLog
import ConfluxVocabulary
import EtcdCluster
import Foundation
import Spawning
import Testing

/// How much space of etcd a log uses, and contents that are too large for one of its values.
@Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct SpaceTests {
    /// The number of keys with this prefix and name.
    private func keys(_ cluster: EtcdCluster, _ prefix: String, _ name: String) throws -> Int {
        try cluster.control(["get", "/\(prefix)/\(name)", "--prefix", "--keys-only"])
            .split(separator: "\n").count { $0.hasPrefix("/") }
    }

    @Test
    func `a commit and a snapshot larger than a value are kept in parts, and removed as a whole`()
        throws
    {
        let cluster = try EtcdCluster.shared.get()
        let prefix = ownPrefix()
        let log = try open(cluster, prefix)
        let epoch = try log.claim().epoch
        var commits = try log.fill(2, epoch)
        commits += try log.fill(1, epoch, bytes: 5 << 20)
        let several = (0..<3).map { LoggedCommit.sample(7 + 2 * $0, epoch, bytes: 600_000) }
        try log.append(several, expecting: log.last, forced: false)
        commits += several
        commits += try log.fill(1, epoch)
        #expect(try log.readAll() == commits)
        #expect(try open(cluster, prefix).claim().last == SequenceNumber(14))
        #expect(try keys(cluster, prefix, "large/") > 6)
        let reader = try log.makeReader()
        let middle = try reader.read(
            from: SequenceNumber(9), through: SequenceNumber(10), limitBytes: 1)
        #expect(middle == [several[1]])

        let again = try open(cluster, prefix)
        _ = try again.claim()
        let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0) }
        let store = try #require(StoreName("document/large"))
        let snapshot = SavedSnapshot(
            store: store, life: SequenceNumber(1), sequence: SequenceNumber(6), schemaVersion: 1,
            digest: Digest(of: bytes), byteCount: UInt64(bytes.count), kind: .confirmed)
        try again.save(SnapshotPiece(snapshot: snapshot, offset: 0, bytes: bytes[...]))
        let found = try reader.readSnapshot(of: snapshot.key, from: 999_999, limitBytes: 1_500_000)
        #expect(found.map(Array.init) == Array(bytes[999_999..<2_499_999]))
        try again.removeSnapshots(of: store)
        #expect(try keys(cluster, prefix, "parts/") == 0)

        try again.save(checkpointAt: 12, bytes: 2_500_000)
        try again.save(checkpointAt: 13)
        try again.truncateAll(below: 13)
        #expect(again.floor == SequenceNumber(13))
        #expect(try keys(cluster, prefix, "large/") == 0)
        #expect(try keys(cluster, prefix, "commits/") == 1)
        #expect(try again.readAll() == [commits[commits.count - 1]])
        reader.close()
    }

    @Test func `the next claim removes unfinished parts`() throws {
        let cluster = try EtcdCluster.shared.get()
        let prefix = ownPrefix()
        let log = try open(cluster, prefix)
        try log.fill(3, try log.claim().epoch)
        let bytes = [UInt8](repeating: 1, count: 100)
        for index in 0..<50 {
            let snapshot = SavedSnapshot(
                store: try #require(StoreName("document/d\(index)")), life: SequenceNumber(1),
                sequence: SequenceNumber(2), schemaVersion: 1, digest: Digest(of: bytes),
                byteCount: 100, kind: .confirmed)
            try log.save(
                SnapshotPiece(snapshot: snapshot, offset: 0, bytes: bytes.prefix(60)))
        }
        #expect(try keys(cluster, prefix, "parts/") == 50)
        // Parts of an append that was never made.
        try cluster.control(["put", "/\(prefix)/large/00000000000000ff/0/1", "x"])
        let next = try open(cluster, prefix)
        _ = try next.claim()
        for name in ["parts/", "uploads/", "large/"] {
            #expect(try keys(cluster, prefix, name) == 0, "\(name)")
        }
    }

    @Test func `a full etcd is reported with what to do, and continues once it has room`()
        throws
    {
        let cluster = try cluster(of: 1, ["--quota-backend-bytes=20971520"])
        let log = try open(cluster)
        let epoch = try log.claim().epoch
        var commits = try log.fill(3, epoch)
        let other = try open(cluster, "other")
        let otherEpoch = try other.claim().epoch
        var full: LogError?
        for _ in 0..<60 where full == nil {
            full = failure { try other.fill(1, otherEpoch, bytes: 900_000) }.error
        }
        #expect(full?.code == .full)
        #expect(full?.message.contains("alarm disarm") == true)
        let commit = LoggedCommit.sample(7, epoch)
        let refused = failure { try log.append(commit, expecting: log.last, forced: false) }
        #expect(refused.error?.code == .full)
        #expect(failure { _ = try open(cluster).claim() }.error?.code == .full)
        #expect(try log.readAll() == commits)

        // Somebody removes what is not needed. The log does the rest: compaction, defragmentation, and the alarm.
        try cluster.control(["del", "/other/", "--prefix"])
        let deadline = ContinuousClock.now + .seconds(100)
        var last: LogError?
        repeat {
            last = failure { try log.append(commit, expecting: log.last, forced: false) }.error
        } while last?.code == .full && ContinuousClock.now < deadline
        #expect(last == nil)
        commits.append(commit)
        #expect(try log.readAll() == commits)
        #expect(try cluster.control(["alarm", "list"]).isEmpty)
    }

    @Test
    func `one member at a time is defragmented, the leader last, and then the alarm is cleared`() {
        func member(
            _ address: String, file: UInt64, used: UInt64, leads: Bool = false, alarm: Bool = false
        ) -> EtcdMember {
            var status = EtcdStatus()
            (status.fileBytes, status.usedBytes) = (file, used)
            (status.isLeader, status.isAlarmed) = (leads, alarm)
            return EtcdMember(address, status)
        }
        func relief(
            _ members: EtcdMember..., resting: Set<String> = [], isRefused: Bool = false
        ) -> EtcdRelief {
            EtcdRelief(members, quotaBytes: 1_600, resting: resting, isRefused: isRefused)
        }
        let leader = member("a", file: 1_500, used: 300, leads: true, alarm: true)
        let follower = member("b", file: 1_400, used: 300, alarm: true)
        let small = member("b", file: 400, used: 300, alarm: true)
        #expect(relief(leader, follower) == .defragment("b"))
        #expect(relief(leader, small) == .defragment("a"))
        #expect(relief(member("a", file: 400, used: 300, alarm: true), small) == .disarm)
        #expect(relief(member("a", file: 1_300, used: 300)) == .none, "it is not near the quota")
        // What is in use can't be freed. Whether to wait for others is up to them.
        let busy = member("a", file: 1_590, used: 1_500, alarm: true)
        #expect(relief(busy) == .none)
        #expect(relief(busy, isRefused: true) == .defragment("a"))
        #expect(relief(busy, resting: ["a"], isRefused: true) == .none)
    }

    @Test func `a file near the quota is defragmented before etcd refuses to write`() throws {
        let cluster = try cluster(of: 1, ["--quota-backend-bytes=\(64 << 20)"])
        let log = try open(cluster) { $0.quotaBytes = 64 << 20 }
        let epoch = try log.claim().epoch
        // Another program fills the file, and removes what it wrote.
        let other = try open(cluster, "other")
        try other.fill(62, try other.claim().epoch, bytes: 900_000)
        other.close()
        try cluster.control(["del", "/other/", "--prefix"])
        for _ in 0..<12 {
            try log.fill(1, epoch, bytes: 900_000)
            _ = log.space
        }
        _ = try log.truncate(below: SequenceNumber(1), limitBytes: 1)
        for _ in 0..<12 {
            try log.fill(1, epoch, bytes: 900_000)
            _ = log.space
        }
        #expect(try cluster.control(["alarm", "list"]).isEmpty)
        #expect(log.space.advice == nil, "\(log.space)")
    }

    @Test
    func `an append that a full etcd refuses on retry counts if the first attempt succeeded`()
        throws
    {
        let cluster = try cluster(of: 1, ["--quota-backend-bytes=20971520"])
        let proxy = try CuttingProxy(before: cluster.endpoints[0])
        let log = try open("etcd://\(proxy.address)/conflux") { settings in
            settings.answerMax = .seconds(60)
            settings.callMax = .seconds(120)
        }
        var commits = try log.fill(3, try log.claim().epoch)
        proxy.withhold(1) {
            let filled = failure {
                let other = try open(cluster, "other")
                try other.fill(60, try other.claim().epoch, bytes: 900_000)
            }
            #expect(filled.error?.code == .full)
        }
        commits += try log.fill(1, commits[0].epoch)
        #expect(proxy.cutCount == 1)
        // etcd refuses this one, unless it was defragmented meanwhile and has room again.
        let epoch = commits[0].epoch
        let next = failure { commits += try log.fill(1, epoch) }
        #expect(next.error == nil || next.error?.code == .full)
        #expect(try open(cluster).readAll() == commits)
    }

    @Test
    func `a log near its quota is reported, and has room again once old entries are discarded`()
        throws
    {
        let cluster = try cluster(of: 1)
        let log = try open(cluster) { $0.quotaBytes = 32 << 20 }
        let epoch = try log.claim().epoch
        var count = 0
        while !log.isNearlyFull, count < 100 {
            try log.fill(1, epoch, bytes: 500_000)
            count += 1
        }
        #expect((20...80).contains(count), "\(count)")
        let last = log.last.rawValue
        try log.save(checkpointAt: last - 1)
        try log.save(checkpointAt: last)
        try log.truncateAll(below: last)
        #expect(!log.isNearlyFull)
        #expect(log.floor.rawValue == last - 1)
    }

    @Test func `history is compacted as the log continues`() throws {
        let cluster = try cluster(of: 1)
        let log = try open(cluster)
        let epoch = try log.claim().epoch
        try log.fill(5, epoch)
        // The history of the end's key is as long as the log.
        try cluster.control(["get", "/conflux/end", "--rev=3"])
        for _ in 0..<2 { try log.fill(1, epoch, bytes: 33 << 20) }
        #expect(throws: Failure.self) {
            try cluster.control(["get", "/conflux/end", "--rev=3"])
        }
    }

    @Test func `changed bytes are found, and those around them are served`() throws {
        let cluster = try EtcdCluster.shared.get()
        let prefix = ownPrefix()
        let log = try open(cluster, prefix)
        let commits = try log.fill(5, try log.claim().epoch)
        try log.save(checkpointAt: 4)
        try log.save(checkpointAt: 6)
        let key = "/\(prefix)/commits/0000000000000006"
        try cluster.control(["put", key, "something else"])
        #expect(try log.read(from: SequenceNumber(1), limitBytes: .max) == Array(commits.prefix(2)))
        let damaged = failure { _ = try log.read(from: SequenceNumber(5), limitBytes: .max) }
        #expect(damaged.error?.code == .damaged)
        #expect(damaged.error?.numbers == SequenceNumber(5)...SequenceNumber(6))
        #expect(
            try log.read(from: SequenceNumber(7), limitBytes: .max) == Array(commits.suffix(2)))
        try cluster.control(["del", key])
        let missing = failure { _ = try log.read(from: SequenceNumber(5), limitBytes: .max) }
        #expect(missing.error?.numbers == SequenceNumber(5)...SequenceNumber(6))
        // The previous commit's checkpoint is still found.
        try cluster.control(["put", "/\(prefix)/checkpoints/0000000000000006", "something"])
        let checkpoint = failure { _ = try log.checkpoint(through: log.last) }
        #expect(checkpoint.error?.numbers == SequenceNumber(6)...SequenceNumber(6))
        #expect(try log.checkpoint(through: SequenceNumber(5))?.sequence == SequenceNumber(4))
        try cluster.control(["put", "/\(prefix)/commits/000000000000000a", "something"])
        #expect(failure { _ = try log.claim() }.error?.code == .damaged)
    }
}
