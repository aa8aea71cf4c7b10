import ConfluxEtcd
import ConfluxHashing
import ConfluxLog
import ConfluxVocabulary
import EtcdCluster
import Foundation
import Testing

/// Members that die, hang and return, and answers that are lost.
@Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct FaultTests {
    private static let deadline = Duration.seconds(3)

    private func hasty(_ settings: inout EtcdLogSettings) {
        settings.answerMax = .seconds(1)
        settings.callMax = Self.deadline
    }

    @Test func `no commit is lost or doubled while members are killed and restarted`() throws {
        let cluster = try cluster(of: 3)
        let log = try open(cluster)
        let epoch = try log.claim().epoch
        var commits: [LoggedCommit] = []
        for round in 0..<3 {
            commits += try log.fill(20, epoch)
            let victim = round == 1 ? (try cluster.leader() + 1) % 3 : try cluster.leader()
            cluster.signal(SIGKILL, victim)
            for _ in 0..<40 {
                let commit = LoggedCommit.sample(log.last.rawValue + 1, epoch)
                try log.insist(commit)
                commits.append(commit)
            }
            try cluster.start(victim)
            commits += try log.fill(20, epoch)
            try cluster.awaitHealth()
        }
        #expect(try log.readAll() == commits)
        #expect(try open(cluster).readAll() == commits)
    }

    @Test func `a stopped leader delays one append, and its cluster continues`() throws {
        let cluster = try cluster(of: 3)
        let log = try open(cluster)
        let epoch = try log.claim().epoch
        var commits = try log.fill(5, epoch)
        let leader = try cluster.leader()
        cluster.signal(SIGSTOP, leader)
        let commit = LoggedCommit.sample(11, epoch)
        let outcome = failure { try log.insist(commit) }
        #expect(outcome.error == nil)
        #expect(outcome.time < Self.deadline + .seconds(6), "\(outcome.time)")
        commits.append(commit)
        commits += try log.fill(20, epoch)
        cluster.signal(SIGCONT, leader)
        commits += try log.fill(20, epoch)
        #expect(try log.readAll() == commits)
    }

    @Test func `without a majority an append ends in time, and with one it is made once`() throws {
        let cluster = try cluster(of: 3)
        let log = try open(cluster, "conflux", hasty)
        let epoch = try log.claim().epoch
        var commits = try log.fill(5, epoch)
        for index in [0, 1] { cluster.signal(SIGKILL, index) }
        let commit = LoggedCommit.sample(11, epoch)
        let (error, time) = failure {
            try log.append(commit, expecting: log.last, forced: false)
        }
        #expect(error?.code == .unknownOutcome, "\(String(describing: error))")
        #expect(error?.message.contains("a majority") == true)
        #expect(time < Self.deadline + .seconds(1), "\(time)")
        let reading = failure { _ = try log.readAll() }
        #expect(reading.error?.code == .unreachable)
        #expect(reading.time < Self.deadline + .seconds(6))
        for index in [0, 1] { try cluster.start(index) }
        try log.insist(commit)
        commits.append(commit)
        #expect(try log.readAll() == commits)
        #expect(failure { try log.confirm() }.error == nil)
    }

    @Test func `an append whose answer is lost is read back`() throws {
        let cluster = try cluster(of: 1)
        let proxy = try CuttingProxy(before: cluster.endpoints[0])
        let log = try open("etcd://\(proxy.address)/conflux", hasty)
        let epoch = try log.claim().epoch
        var commits = try log.fill(3, epoch)
        for size in [10, 100_000, 3 << 20] {
            proxy.withhold(1)
            commits += try log.fill(1, epoch, bytes: size)
            commits += try log.fill(1, epoch)
        }
        #expect(proxy.cutCount == 3)
        #expect(try log.readAll() == commits)

        // If no answer gets through, the outcome is unknown. Repeating the append reports it.
        let before = log.last
        let commit = LoggedCommit.sample(before.rawValue + 1, epoch)
        proxy.withhold(.max)
        let lost = failure { try log.append(commit, expecting: before, forced: false) }
        #expect(lost.error?.code == .unknownOutcome)
        #expect(lost.time < Self.deadline + .seconds(6))
        #expect(log.last == before)
        proxy.withhold(0)
        try log.append(commit, expecting: before, forced: false)
        #expect(try log.readAll() == commits + [commit])
    }

    @Test func `a request on a broken connection is not reported as unsent`() throws {
        let cluster = try cluster(of: 1)
        let proxy = try CuttingProxy(before: cluster.endpoints[0])
        let log = try open("etcd://\(proxy.address)/conflux", hasty)
        let commits = try log.fill(3, try log.claim().epoch)
        proxy.withhold(1) { [weak proxy] in proxy?.refuse() }
        let commit = LoggedCommit.sample(7, commits[0].epoch)
        let lost = failure { try log.append(commit, expecting: log.last, forced: false) }
        #expect(lost.error?.code == .unknownOutcome, "\(String(describing: lost.error))")
        #expect(proxy.cutCount == 1)
        #expect(try open(cluster).readAll() == commits + [commit])
    }

    @Test func `a checkpoint is whole even if the answer to listing it was lost`() throws {
        let cluster = try cluster(of: 1)
        let proxy = try CuttingProxy(before: cluster.endpoints[0])
        let log = try open("etcd://\(proxy.address)/conflux", hasty)
        try log.fill(3, try log.claim().epoch)
        let checkpoint = SavedCheckpoint(
            sequence: SequenceNumber(4), bytes: [UInt8](repeating: 4, count: 100)[...])
        let pieces = checkpoint.pieces(of: 60)
        try log.save(pieces[0])
        // Two answers pass: that its bytes are there, and which checkpoints exist.
        proxy.withhold(.max, passing: 2)
        #expect(failure { try log.save(pieces[1]) }.error?.code == .unknownOutcome)
        proxy.withhold(0)
        // The next save finds that the checkpoint is listed, and keeps its bytes.
        _ = failure { try log.save(checkpointAt: 6) }
        #expect(try log.checkpoint(through: SequenceNumber(4)) == checkpoint)
        try log.save(checkpointAt: 6)
        #expect(try log.checkpoint(through: SequenceNumber(4)) == checkpoint)
        #expect(try log.checkpoint(through: SequenceNumber(6))?.sequence == SequenceNumber(6))
    }

    @Test func `a late request that was retried meanwhile changes nothing`() throws {
        let cluster = try cluster(of: 1)
        let proxy = try HoldingProxy(before: cluster.endpoints[0])
        let log = try open("etcd://\(proxy.address)/conflux", hasty)
        try log.fill(3, try log.claim().epoch)
        let bytes = [UInt8](repeating: 1, count: 100)[...]
        let snapshot = SavedSnapshot(
            store: try #require(StoreName("document/a")), life: SequenceNumber(1),
            sequence: SequenceNumber(2), schemaVersion: 1, digest: Digest(of: Array(bytes)),
            byteCount: 100, kind: .confirmed)
        try log.save(SnapshotPiece(snapshot: snapshot, offset: 0, bytes: bytes))
        proxy.hold("/conflux/change")
        try log.removeSnapshots(of: snapshot.store)
        #expect(proxy.isHolding)
        try log.save(SnapshotPiece(snapshot: snapshot, offset: 0, bytes: bytes))
        #expect(proxy.release())
        #expect(try log.readSnapshot(of: snapshot.key, from: 0, limitBytes: 100) == bytes)
    }

    @Test func `a claim counts even if its answer is lost`() throws {
        let cluster = try cluster(of: 1)
        let proxy = try CuttingProxy(before: cluster.endpoints[0])
        let log = try open("etcd://\(proxy.address)/conflux")
        let commits = try log.fill(3, try log.claim().epoch)
        // The first lost answer is that of the present epoch, the second that of the claim.
        proxy.withhold(2)
        let claim = try log.claim()
        #expect(proxy.cutCount == 2)
        #expect(claim.epoch == Epoch(2))
        #expect(claim.last == SequenceNumber(6))
        #expect(try log.fill(1, claim.epoch) + [] == Array(try log.readAll().suffix(1)))
        #expect(try log.readAll().prefix(3) == commits[...])
    }

    @Test func `a claim in progress does not count once its program is superseded`() throws {
        let cluster = try cluster(of: 1)
        let old = try open(cluster)
        let epoch = try old.claim().epoch
        var commits = try old.fill(3, epoch)
        let new = try open(cluster)
        #expect(new.id == old.id)
        let claim = try new.claim(raisingEpochBy: 7)
        #expect(claim == LogClaim(epoch: epoch.raised(by: 7), last: old.last, lastEpoch: epoch))
        for body in [
            { try old.append(.sample(7, epoch), expecting: old.last, forced: false) },
            { try old.confirm() }, { try old.save(checkpointAt: 4) },
            { try old.save(checkpointAt: 6, bytes: 3 << 20) },
            { _ = try old.fill(1, epoch, bytes: 3 << 20) },
        ] as [() throws -> Void] {
            #expect(failure(body).error?.code == .superseded)
        }
        commits += try new.fill(1, claim.epoch)
        // Its earlier append is there, but it only learns that it was superseded.
        #expect(
            failure { try old.append(commits[2], expecting: .init(4), forced: false) }
                .error?.code == .superseded)
        #expect(try old.readAll() == Array(commits.prefix(3)))
        #expect(try new.readAll() == commits)
    }

    @Test func `a watcher is notified of a claim`() throws {
        let cluster = try cluster(of: 1)
        let old = try open(cluster)
        _ = try old.claim()
        let told = DispatchSemaphore(value: 0)
        old.watchClaims { told.signal() }
        // The watcher is also told when it begins to watch.
        #expect(told.wait(timeout: .now() + 10) == .success)
        try old.confirm()
        #expect(told.wait(timeout: .now() + 0.2) == .timedOut)
        let new = try open(cluster)
        _ = try new.claim()
        #expect(told.wait(timeout: .now() + 10) == .success)
        #expect(failure { try old.confirm() }.error?.code == .superseded)
        // This works even if the connection broke meanwhile.
        cluster.signal(SIGKILL, 0)
        try cluster.start(0)
        #expect(told.wait(timeout: .now() + 30) == .success)
        old.close()
    }
}
