import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Actions on condition that their store has not changed (rule 24).
struct ConditionScenarios {
    /// Dispatches texts to `list/shared` on condition that it has not changed since a number.
    private func dispatch(
        _ texts: [String], since sequence: SequenceNumber?, epoch: Epoch = .none,
        from node: Int = 1,
        in cluster: inout Cluster, isAtomic: Bool = false
    ) {
        cluster.submit(
            texts, to: "list/shared", from: node,
            ifUnchangedSince: sequence.map { StoreVersion(sequence: $0, epoch: epoch) },
            isAtomic: isAtomic)
        cluster.run()
    }

    private func number(_ counter: UInt64, of node: Int = 1, in cluster: Cluster) -> SequenceNumber?
    {
        guard case .committed(_, let sequence, _, _)? = cluster.nodes[node]?.outcomes[counter]
        else { return nil }
        return sequence
    }

    /// The version with which an action was answered that is not in the log.
    private func conflict(_ counter: UInt64, of node: Int = 1, in cluster: Cluster)
        -> SequenceNumber?
    {
        guard case .conflict(let version, _)? = cluster.nodes[node]?.outcomes[counter] else {
            return nil
        }
        return version.sequence
    }

    @Test func `an action with a condition is taken if nothing has changed its store`() throws {
        var cluster = Cluster.twoNodes()
        dispatch(["a"], since: nil, in: &cluster)
        let first = try #require(number(1, in: cluster))
        // Entries for other stores don't count.
        cluster.open("other", on: 2)
        cluster.dispatch(["x"], to: "other/shared", from: 2)
        dispatch(["b"], since: first, in: &cluster)
        let second = try #require(number(2, in: cluster))
        dispatch(["c"], since: first, in: &cluster)
        #expect(conflict(3, in: cluster) == second)
        dispatch(["d"], since: second, in: &cluster)
        for node in [1, 2] { #expect(cluster.nodes[node]?.texts(of: "list") == ["a", "b", "d"]) }
    }

    @Test func `an action for the whole state changes each of its stores`() throws {
        var cluster = Cluster.twoNodes()
        dispatch(["a"], since: nil, in: &cluster)
        let first = try #require(number(1, in: cluster))
        cluster.dispatch(["all"], to: "list/*", from: 2)
        let all = try #require(number(1, of: 2, in: cluster))
        dispatch(["b"], since: first, in: &cluster)
        #expect(conflict(2, in: cluster) == all)
    }

    @Test func `of two actions with one version, one is taken, even before it is durable`() throws {
        var cluster = Cluster.twoNodes()
        dispatch(["a"], since: nil, in: &cluster)
        let first = try #require(number(1, in: cluster))
        cluster.isDiskSlow = true
        dispatch(["b"], since: first, in: &cluster)
        dispatch(["c"], since: first, from: 2, in: &cluster)
        cluster.finishAppends()
        let second = try #require(number(2, in: cluster))
        #expect(conflict(1, of: 2, in: cluster) == second)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "b"])
    }

    @Test func `an action changes the store for those behind it in its batch`() throws {
        var cluster = Cluster.twoNodes()
        dispatch(["a"], since: nil, in: &cluster)
        let first = try #require(number(1, in: cluster))
        dispatch(["b", "c"], since: first, in: &cluster)
        #expect(conflict(3, in: cluster) == number(2, in: cluster))
        // An action without a condition counts, too.
        let second = try #require(number(2, in: cluster))
        var builder = BatchBuilder()
        let plain = BatchTarget(
            target: .state(StoreName("list")!.state), schemaVersion: 1, coding: .json)
        var row = BatchTarget(target: .store(StoreName("list")!), schemaVersion: 1, coding: .json)
        row.unchangedSince = StoreVersion(sequence: second)
        builder.append(target: plain, payload: Array("all".utf8))
        builder.append(target: row, payload: Array("d".utf8))
        cluster.dispatch(&builder, from: 1)
        cluster.run()
        #expect(conflict(5, in: cluster) == number(4, in: cluster))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "b", "all"])
    }

    @Test func `the actions of an atomic batch are judged together`() throws {
        var cluster = Cluster.twoNodes()
        dispatch(["a"], since: nil, in: &cluster)
        let first = try #require(number(1, in: cluster))
        dispatch(["b", "c"], since: first, in: &cluster, isAtomic: true)
        #expect(number(3, in: cluster) == number(2, in: cluster)?.next)
        dispatch(["d", "e"], since: first, in: &cluster, isAtomic: true)
        #expect(conflict(4, in: cluster) != nil && conflict(5, in: cluster) != nil)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "b", "c"])
    }

    @Test func `a store that an atomic batch only reads has a condition, and no entry`() throws {
        var cluster = Cluster.twoNodes()
        cluster.open("other", on: 2)
        cluster.dispatch(["x"], to: "other/shared", from: 2)
        dispatch(["a"], since: nil, in: &cluster)
        let read = try #require(number(1, of: 2, in: cluster))
        /// Dispatches to `list` if neither it nor `other` has changed; without a text, to `other` if it has not changed.
        func transact(_ text: String?, since sequence: SequenceNumber?) {
            var builder = BatchBuilder()
            let rows = [("list", sequence), ("other", read)].map { name, sequence in
                BatchTarget(
                    target: .store(StoreName(name)!), schemaVersion: 1, coding: .json,
                    unchangedSince: sequence.map { StoreVersion(sequence: $0) })
            }
            builder.append(
                target: text == nil ? rows[1] : rows[0], payload: Array((text ?? "y").utf8))
            #expect(builder.row(for: rows[1]) != nil)
            cluster.dispatch(&builder, from: 1, isAtomic: true)
            cluster.run()
        }
        transact("b", since: number(1, in: cluster))
        let second = try #require(number(2, in: cluster))
        // What was only read has not changed, so a condition on it still holds.
        transact(nil, since: nil)
        let third = try #require(number(3, in: cluster))
        transact("c", since: second)
        #expect(conflict(4, in: cluster) == third)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a", "b"])
        #expect(cluster.nodes[2]?.texts(of: "other") == ["x", "y"])
    }

    @Test func `an action that comes again gets its receipt, whatever has changed since`() throws {
        var cluster = Cluster.twoNodes()
        dispatch(["a"], since: nil, in: &cluster)
        let first = try #require(number(1, in: cluster))
        dispatch(["b"], since: first, in: &cluster)
        let submit = try #require(
            cluster.nodes[1]?.sent.last { if case .submit = $0 { true } else { false } })
        cluster.dispatch(["all"], to: "list/*", from: 2)
        cluster.published.removeAll()
        let speaker = cluster.speaker(try #require(cluster.connection(of: 1)))
        cluster.queue.append(.toSequencer(1, Frame.encode(submit, by: speaker)))
        cluster.run()
        guard case .send(.receipts(let receipts), _) = cluster.published.first else {
            Issue.record("the receipt did not come again: \(cluster.published)")
            return
        }
        #expect(receipts.runs.map(\.firstSequence) == [try #require(number(2, in: cluster))])
    }

    @Test func `the log has no condition, and a later sequencer compares with the same number`()
        throws
    {
        var cluster = Cluster.twoNodes()
        dispatch(["a"], since: nil, in: &cluster)
        let first = try #require(number(1, in: cluster))
        dispatch(["b"], since: first, in: &cluster)
        for entry in cluster.disk.bodies {
            for case .batch(_, let batch) in try Commit.decode(body: entry.body).blocks {
                #expect(!batch.hasConditions)
            }
        }
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        dispatch(["c"], since: first, in: &cluster)
        #expect(conflict(3, in: cluster) == number(2, in: cluster))
        dispatch(["d"], since: number(2, in: cluster), in: &cluster)
        #expect(number(4, in: cluster) != nil)
    }

    @Test func `a version that the log never had, or has lost, holds for nothing`() throws {
        var cluster = Cluster.twoNodes()
        dispatch(["a"], since: nil, in: &cluster)
        let first = try #require(number(1, in: cluster))
        dispatch(["b"], since: SequenceNumber(1 << 40), in: &cluster)
        #expect(conflict(2, in: cluster) == first)
        dispatch(["c"], since: .zero, in: &cluster)
        #expect(conflict(3, in: cluster) == first)
        let former = try #require(cluster.sequencer?.epoch)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        let epoch = try #require(cluster.sequencer?.epoch)
        // No term yet.
        dispatch(["d"], since: first, epoch: Epoch(epoch.rawValue + 1), in: &cluster)
        #expect(conflict(4, in: cluster) == first)
        // The log had that number in both terms, and this one only in the second.
        dispatch(["e"], since: first, epoch: former, in: &cluster)
        let second = try #require(number(5, in: cluster))
        dispatch(["f"], since: second, epoch: former, in: &cluster)
        #expect(conflict(6, in: cluster) == second)
        dispatch(["g"], since: second, epoch: epoch, in: &cluster)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a", "e", "g"])
    }

    @Test func `a version of another life holds for nothing`() throws {
        var cluster = Cluster.twoNodes()
        dispatch(["a"], since: nil, in: &cluster)
        let first = try #require(number(1, in: cluster))
        _ = cluster.drop("list", by: 1)
        cluster.run()
        cluster.open("list", on: 2)
        cluster.run()
        dispatch(["b"], since: first, from: 2, in: &cluster)
        #expect(conflict(1, of: 2, in: cluster) ?? .zero > first)
    }

    @Test func `what is withdrawn of a batch leaves the conditions of the rest`() {
        var builder = BatchBuilder()
        for number in 1...3 {
            let row = BatchTarget(
                target: .store(StoreName("list")!), schemaVersion: 1, coding: .json,
                unchangedSince: StoreVersion(sequence: SequenceNumber(UInt64(number))))
            builder.append(target: row, payload: [UInt8(number)])
        }
        let batch = builder.finish(firstCounter: 1, settled: 0)
        let parts = batch.parts(withdrawing: RangeSet(2..<3), settled: 0)
        #expect(
            parts.map { $0.targets.map { $0.unchangedSince?.sequence.rawValue } } == [[1], [], [3]])
        for part in parts { #expect(throws: Never.self) { try Batch.decode(part.encoded) } }
    }

    @Test func `a condition of a row that is no store, or is not there, is refused`() throws {
        var builder = BatchBuilder()
        let row = BatchTarget(
            target: .store(StoreName("list")!), schemaVersion: 1, coding: .json,
            unchangedSince: StoreVersion(sequence: SequenceNumber(3), epoch: Epoch(1)))
        builder.append(target: row, payload: [1])
        let batch = builder.finish(firstCounter: 1, settled: 0)
        #expect(try Batch.decode(batch.encoded) == batch)
        // The row of the condition.
        let place = batch.encoded.endIndex - batch.entries.count - BatchLayout.conditionBytes
        var other = batch.encoded
        other[place] = 1
        #expect(throws: WireError.self) { try Batch.decode(other) }

        var plain = BatchBuilder()
        var all = row
        all.target = .state(StoreName("list")!.state)
        plain.append(target: all, payload: [1])
        let wrong = plain.finish(firstCounter: 1, settled: 0)
        #expect(throws: WireError.self) { try Batch.decode(wrong.encoded) }
        // No log has a condition.
        var commit = CommitBuilder(
            log: .none, epoch: Epoch(1), predecessor: .none, first: SequenceNumber(1))
        commit.append(batch, from: Incarnation(2))
        let body = commit.finish(timestamp: Timestamp(0)).dropFirst(Frame.size)
        #expect(throws: WireError.self) { try Commit.decode(body: body) }
    }
}
