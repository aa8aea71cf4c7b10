import ConfluxEtcd
import ConfluxLog
import ConfluxVocabulary
import EtcdCluster
import Foundation
import Testing

/// Several programs that share one log on etcd (rule 47).
@Suite(.enabled(if: EtcdCluster.isInstalled)) struct StandbyTests {
    private let prefix = ownPrefix()

    private func pair() throws -> (EtcdLog, EtcdLog) {
        let cluster = try EtcdCluster.shared.get()
        return (try open(cluster, prefix), try open(cluster, prefix))
    }

    private func word(
        _ epoch: Epoch, _ address: String = "tcp://a:1", renewal: UInt64 = 1,
        _ standing: ServingWord.Standing = .serving
    ) -> ServingWord {
        ServingWord(epoch: epoch, address: address, renewal: renewal, standing: standing)
    }

    /// Claims a log after the newest claim.
    private func claim(
        _ log: EtcdLog, after epoch: Epoch, as address: String = "tcp://a:1"
    ) throws -> (claim: LogClaim, heartbeat: any TermHeartbeat) {
        var heartbeat: (any TermHeartbeat)?
        let claim = try log.claim(raisingEpochBy: 1, after: epoch, as: address) {
            heartbeat = $0; _ = $1
        }
        return (claim, try #require(heartbeat))
    }

    @Test func `a standby sees and reads appended entries`() throws {
        let (one, two) = try pair()
        let empty = try two.look()
        #expect(empty.epoch == .none)
        #expect(empty.last == .zero)
        #expect(empty.serving == nil)
        let epoch = try one.claim().epoch
        let commits = try one.fill(3, epoch)
        let found = try two.look()
        #expect(found.epoch == epoch)
        #expect(found.last == one.last)
        #expect(found.floor == SequenceNumber(1))
        #expect(two.last == one.last)
        #expect(try two.readAll() == commits)
        // To look at the log does not claim it.
        #expect(
            failure { try two.append(.sample(7, epoch), expecting: two.last, forced: false) }
                .error?.code == .notClaimed)
        try one.confirm()
    }

    @Test func `a claim counts only after the epoch that was seen`() throws {
        let (one, two) = try pair()
        let seen = try two.look().epoch
        let first = try claim(one, after: seen).claim
        var hasWon = false
        let late = failure {
            _ = try two.claim(raisingEpochBy: 5, after: seen, as: "tcp://b:1") { _, _ in
                hasWon = true
            }
        }
        #expect(late.error?.code == .superseded)
        #expect(!hasWon)
        try one.confirm()
        _ = try one.fill(1, first.epoch)
        #expect(try two.look().epoch == first.epoch)
        let second = try claim(two, after: first.epoch).claim
        #expect(second.last == one.last)
        #expect(failure { try one.confirm() }.error?.code == .superseded)
    }

    @Test func `a claim is always seen with its owner, whose words end with the next claim`()
        throws
    {
        let (one, two) = try pair()
        let (former, old) = try claim(one, after: .none)
        #expect(try two.look().serving == word(former.epoch, renewal: 0))
        #expect(try old.say(word(former.epoch)).isEmpty)
        #expect(try two.look().serving == word(former.epoch))
        let (later, new) = try claim(two, after: former.epoch, as: "tcp://b:1")
        let epoch = later.epoch
        #expect(try one.look().serving == word(epoch, "tcp://b:1", renewal: 0))
        let late = failure { _ = try old.say(word(former.epoch, renewal: 2)) }
        #expect(late.error?.code == .superseded)
        #expect(try one.look().serving == word(epoch, "tcp://b:1", renewal: 0))
        let left = word(epoch, "tcp://b:1", renewal: 2, .left(successor: "tcp://a:1"))
        _ = try new.say(left)
        #expect(try one.look().serving == left)
        let nobody = word(epoch, "tcp://b:1", renewal: 3, .left(successor: nil))
        _ = try new.say(nobody)
        #expect(try one.look().serving == nobody)
    }

    @Test func `the serving program learns which ones stand by`() throws {
        let (one, two) = try pair()
        let (term, heartbeat) = try claim(one, after: .none)
        var standby = StandbyWord(address: "tcp://b:1", last: SequenceNumber(4), renewal: 1)
        try two.standBy(standby)
        // Standbys that don't count: the serving program's own former word, and one that may have ended long ago.
        try one.standBy(StandbyWord(address: "tcp://a:1", last: .zero, renewal: 9))
        try two.standBy(StandbyWord(address: "tcp://c:1", last: .zero, renewal: 3))
        #expect(try heartbeat.say(word(term.epoch)).isEmpty)
        standby.renewal += 1
        try two.standBy(standby)
        #expect(try heartbeat.say(word(term.epoch, renewal: 2)) == [standby])
        #expect(try heartbeat.say(word(term.epoch, renewal: 3)) == [standby])
        try two.standDown("tcp://b:1")
        #expect(try heartbeat.say(word(term.epoch, renewal: 4)).isEmpty)
    }

    @Test func `a damaged hint does not count, and does no harm`() throws {
        let (one, two) = try pair()
        let (term, heartbeat) = try claim(one, after: .none)
        let epoch = term.epoch
        let cluster = try EtcdCluster.shared.get()
        try cluster.control(["put", "/\(prefix)/serving", "nonsense"])
        try cluster.control(["put", "/\(prefix)/standbys/tcp://c:1", "nonsense"])
        #expect(try two.look().serving == nil)
        #expect(try heartbeat.say(word(epoch, renewal: 2)).isEmpty)
        #expect(try two.look().serving == word(epoch, renewal: 2))
        // For a program that opens the log, these keys belong to it.
        #expect(try open(cluster, prefix).id == one.id)
    }

    @Test func `a watcher is notified when the serving program says something`() throws {
        let (one, two) = try pair()
        let (term, heartbeat) = try claim(one, after: .none)
        let epoch = term.epoch
        let told = DispatchSemaphore(value: 0)
        two.watchServing { told.signal() }
        // The watcher is also told when it begins to watch.
        #expect(told.wait(timeout: .now() + 10) == .success)
        for renewal in 1...5 {
            _ = try heartbeat.say(word(epoch, renewal: UInt64(renewal)))
            #expect(told.wait(timeout: .now() + 10) == .success)
        }
        two.close()
    }

    /// If the member were given as much time as for other requests, this would not end in time.
    @Test(.timeLimit(.minutes(1)))
    func `a member that hangs does not delay noticing a silent term`() throws {
        let cluster = try cluster(of: 3)
        let logs = try (0..<16).map { _ in
            try open(cluster) { settings in
                settings.answerMax = .seconds(60)
                settings.callMax = .seconds(120)
            }
        }
        let leader = try cluster.leader()
        cluster.signal(SIGSTOP, (leader + 1) % 3)
        defer { cluster.signal(SIGCONT, (leader + 1) % 3) }
        for log in logs { #expect(try log.look().last == .zero) }
    }
}
