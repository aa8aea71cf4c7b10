import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// What is kept aside must take no more room than the log gave up for it.
struct AsideEntriesTests {
    private let store = StoreName("list/old")!

    /// A commit with a batch of one action for each target.
    private func commit(_ targets: [String]) throws -> Commit {
        var builder = CommitBuilder(
            log: Identifier(high: 1, low: 2), epoch: Epoch(3), predecessor: Epoch(3),
            first: SequenceNumber(5))
        for (index, target) in targets.enumerated() {
            var batch = BatchBuilder()
            batch.append(
                target: BatchTarget(
                    target: try #require(Target(target)), schemaVersion: 1, coding: .json),
                payload: Array("\(index)".utf8))
            builder.append(
                batch.finish(firstCounter: UInt64(index + 1), settled: 0), from: Incarnation(3))
        }
        let frame = builder.finish(timestamp: Timestamp(7))
        return try Commit.decode(body: frame.dropFirst(Frame.size))
    }

    private func kept(of commit: Commit, after: UInt64 = 1) throws -> (
        commits: [Commit], bytes: Int
    ) {
        var entries = AsideEntries(
            store, life: SequenceNumber(1), after: SequenceNumber(after))
        entries.add(commit)
        return (try AsideEntries.commits(of: entries.bytes[...]).map(\.commit), entries.bytes.count)
    }

    @Test func `entries with consecutive numbers are kept in one commit`() throws {
        let commit = try commit(["list/old", "list/*", "list/old"])
        #expect(try kept(of: commit).commits == [commit])
    }

    @Test func `entries of others are left out, and those kept have their numbers`() throws {
        let commit = try commit(["list/old", "list/new", "list/*", "list/old", "list/new"])
        let kept = try kept(of: commit)
        #expect(kept.commits.map(\.first) == [SequenceNumber(5), SequenceNumber(7)])
        #expect(kept.commits.map(\.last) == [SequenceNumber(5), SequenceNumber(8)])
        #expect(kept.commits.allSatisfy { $0.timestamp == commit.timestamp })
        #expect(try self.kept(of: commit, after: 7).commits.map(\.first) == [SequenceNumber(8)])
    }

    @Test(arguments: [1, 10, 200])
    func `a run takes at most its bound beside its entries`(count: Int) throws {
        let long = String(repeating: "n", count: Name.lengthMax)
        var targets: [String] = []
        for _ in 0..<count { targets += ["list/old", "\(long)/\(long)"] }
        let kept = try kept(of: try commit(targets))
        #expect(kept.commits.count == count)
        #expect(kept.bytes <= count * (Int(AsideEntries.headBytesMax) + 5))
    }
}
