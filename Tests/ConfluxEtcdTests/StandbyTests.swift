import ConfluxEtcd
import ConfluxLog
import ConfluxVocabulary
import EtcdCluster
import Foundation
import Testing

/// Several programs with one log on etcd (rule 47).
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

    @Test func `who stands by sees what is appended, and reads it`() throws {
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
        // To look is no claim.
        #expect(
            failure { try two.append(.sample(7, epoch), expecting: two.last, forced: false) }
                .error?.code == .notClaimed)
        try one.confirm()
    }

    @Test func `a claim counts only behind the epoch that was seen`() throws {
        let (one, two) = try pair()
        let seen = try two.look().epoch
        let first = try one.claim(raisingEpochBy: 3, after: seen)
        let late = failure { _ = try two.claim(raisingEpochBy: 5, after: seen) }
        #expect(late.error?.code == .superseded)
        try one.confirm()
        _ = try one.fill(1, first.epoch)
        #expect(try two.look().epoch == first.epoch)
        let second = try two.claim(raisingEpochBy: 1, after: first.epoch)
        #expect(second.last == one.last)
        #expect(failure { try one.confirm() }.error?.code == .superseded)
    }

    @Test func `what the one that serves says is seen, and nothing of who served before`() throws {
        let (one, two) = try pair()
        let former = try one.claim().epoch
        let old = try one.makeHerald()
        #expect(try old.say(word(former)).isEmpty)
        #expect(try two.look().serving == word(former))
        #expect(failure { _ = try two.makeHerald() }.error?.code == .notClaimed)
        let epoch = try two.claim(raisingEpochBy: 1, after: former).epoch
        let new = try two.makeHerald()
        _ = try new.say(word(epoch, "tcp://b:1"))
        let late = failure { _ = try old.say(word(former, renewal: 2)) }
        #expect(late.error?.code == .superseded)
        #expect(try one.look().serving == word(epoch, "tcp://b:1"))
        let left = word(epoch, "tcp://b:1", renewal: 2, .left(successor: "tcp://a:1"))
        _ = try new.say(left)
        #expect(try one.look().serving == left)
        let nobody = word(epoch, "tcp://b:1", renewal: 3, .left(successor: nil))
        _ = try new.say(nobody)
        #expect(try one.look().serving == nobody)
    }

    @Test func `the one that serves hears who stands by, and is not among them`() throws {
        let (one, two) = try pair()
        let epoch = try one.claim().epoch
        let herald = try one.makeHerald()
        let standby = StandbyWord(address: "tcp://b:1", last: SequenceNumber(4), renewal: 1)
        try two.standBy(standby)
        // It did so itself once.
        try one.standBy(StandbyWord(address: "tcp://a:1", last: .zero, renewal: 9))
        #expect(try herald.say(word(epoch)) == [standby])
        #expect(try herald.say(word(epoch, renewal: 2)) == [standby])
    }

    @Test func `a hint that was damaged is none, and harms nothing`() throws {
        let (one, two) = try pair()
        let epoch = try one.claim().epoch
        _ = try one.makeHerald().say(word(epoch))
        let cluster = try EtcdCluster.shared.get()
        try cluster.control(["put", "/\(prefix)/serving", "nonsense"])
        try cluster.control(["put", "/\(prefix)/standbys/tcp://c:1", "nonsense"])
        #expect(try two.look().serving == nil)
        #expect(try one.makeHerald().say(word(epoch, renewal: 2)).isEmpty)
        #expect(try two.look().serving == word(epoch, renewal: 2))
        // A program that opens the log takes the keys for its own.
        #expect(try open(cluster, prefix).id == one.id)
    }

    @Test func `whoever watches is told when the one that serves says something`() throws {
        let (one, two) = try pair()
        let epoch = try one.claim().epoch
        let herald = try one.makeHerald()
        let told = DispatchSemaphore(value: 0)
        two.watchServing { told.signal() }
        // It is told as well when it begins to watch.
        #expect(told.wait(timeout: .now() + 10) == .success)
        for renewal in 1...5 {
            _ = try herald.say(word(epoch, renewal: UInt64(renewal)))
            #expect(told.wait(timeout: .now() + 10) == .success)
        }
        two.close()
    }
}
