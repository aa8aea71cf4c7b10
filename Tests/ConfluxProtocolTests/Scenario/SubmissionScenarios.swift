import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Dispatching: total order, durability before publication, exactly-once commits, correct outcomes.
struct SubmissionScenarios {
    @Test func `all replicas apply the same actions in the same order`() {
        var cluster = Cluster.twoNodes()
        for round in 0..<20 {
            cluster.submit(["a\(round)", "b\(round)"], to: "list/*", from: 1)
            cluster.submit(["c\(round)"], to: "list/shared", from: 2)
            cluster.run()
        }
        let first = cluster.nodes[1]?.texts(of: "list") ?? []
        #expect(first.count == 60)
        #expect(cluster.nodes[2]?.texts(of: "list") == first)
        #expect(first.filter { $0.hasPrefix("a") } == (0..<20).map { "a\($0)" })
    }

    @Test func `nothing is published or receipted before it is in the log`() {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.published.removeAll()
        cluster.dispatch(["x"], to: "list/*", from: 1)
        cluster.pass(.seconds(2))
        let said = cluster.published.filter { effect in
            switch effect {
            case .publishCommit, .send(.receipts, _): true
            default: false
            }
        }
        #expect(said.isEmpty)
        #expect(cluster.nodes[1]?.outcomes.isEmpty == true)
        #expect(cluster.nodes[2]?.texts(of: "list") == [])
        cluster.finishAppends()
        #expect(cluster.nodes[2]?.texts(of: "list") == ["x"])
        #expect(cluster.nodes[1]?.outcomes.count == 1)
    }

    @Test func `actions that arrive while the log is busy become one commit`() {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.dispatch(["first"], to: "list/*", from: 1)
        for text in ["a", "b", "c"] { cluster.dispatch([text], to: "list/*", from: 1) }
        cluster.dispatch(["d"], to: "list/*", from: 2)
        let before = cluster.disk.bodies.count
        cluster.finishAppends()
        #expect(cluster.disk.bodies.count == before + 2)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["first", "a", "b", "c", "d"])
    }

    @Test func `a batch that arrives twice is applied once and gets its first outcome again`()
        throws
    {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["x", "y"], to: "list/*", from: 1)
        let outcomes = try #require(cluster.nodes[1]?.outcomes)
        let submit = try #require(
            cluster.nodes[1]?.sent.last { if case .submit = $0 { true } else { false } })
        cluster.published.removeAll()
        let last = cluster.disk.last
        let speaker = cluster.speaker(try #require(cluster.connection(of: 1)))
        cluster.queue.append(.toSequencer(1, Frame.encode(submit, by: speaker)))
        cluster.run()
        #expect(cluster.disk.last == last)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["x", "y"])
        guard case .send(.receipts(let receipts), _) = cluster.published.first,
            case .committed(_, let sequence, _, _) = outcomes[1]
        else {
            Issue.record("the first outcome did not come again: \(cluster.published)")
            return
        }
        #expect(receipts.runs.map(\.firstSequence) == [sequence])
    }

    @Test func `a batch after a lost one is discarded, and both are sent again in order`() throws {
        var cluster = Cluster.twoNodes()
        cluster.submit(["lost"], to: "list/*", from: 1)
        cluster.queue.removeAll()
        cluster.submit(["behind"], to: "list/*", from: 1)
        cluster.run()
        #expect(cluster.nodes[2]?.texts(of: "list") == [])
        cluster.pass(.milliseconds(100))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["lost", "behind"])
        #expect(cluster.nodes[1]?.outcomes.count == 2)
    }

    @Test func `an unknown target is rejected with the names that are known`() throws {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1", "nowhere/*:2", "3"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "3"])
        let node = try #require(cluster.nodes[1])
        guard case .rejected(.unknownTarget, let message) = node.outcomes[2] else {
            Issue.record("not rejected: \(node.outcomes)")
            return
        }
        #expect(message.contains("nowhere") && message.contains("list"))
        // The rejection took up no sequence number, and the node continues after it.
        cluster.dispatch(["4"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "3", "4"])
        #expect(cluster.nodes[1]?.outcomes.count == 4)
    }

    @Test func `an unknown store of a known state is rejected`() {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1"], to: "list/nowhere", from: 1)
        guard case .rejected(.unknownTarget, _) = cluster.nodes[1]?.outcomes[1] else {
            Issue.record("not rejected: \(cluster.nodes[1]?.outcomes ?? [:])")
            return
        }
    }

    @Test func `an atomic batch with one bad target is rejected whole`() {
        var cluster = Cluster.twoNodes()
        cluster.submit(["1", "nowhere/*:2", "3"], to: "list/*", from: 1, isAtomic: true)
        cluster.run()
        #expect(cluster.nodes[2]?.texts(of: "list") == [])
        #expect(cluster.nodes[1]?.outcomes.count == 3)
        cluster.dispatch(["4"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["4"])
    }

    @Test func `a payload above the limit is rejected, those around it are not`() {
        var cluster = Cluster()
        cluster.settings.payloadBytesMax = 100
        cluster.startSequencer()
        cluster.addNode(1, store: "list")
        let long = String(repeating: "x", count: 101)
        cluster.dispatch(["a", long, "b"], to: "list/*", from: 1)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a", "b"])
        guard case .rejected(.payloadTooLarge, _) = cluster.nodes[1]?.outcomes[2] else {
            Issue.record("not rejected: \(cluster.nodes[1]?.outcomes ?? [:])")
            return
        }
    }

    @Test func `a rejection is reported after the commits before it`() throws {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        cluster.published.removeAll()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.dispatch(["2"], to: "nowhere/*", from: 1)
        #expect(cluster.nodes[1]?.outcomes.isEmpty == true)
        cluster.finishAppends()
        let order = cluster.published.compactMap { effect -> String? in
            switch effect {
            case .send(.receipts, _): "receipts"
            case .send(.rejection, _): "rejection"
            default: nil
            }
        }
        #expect(order == ["receipts", "rejection"])
    }

    @Test func `above the window a batch is discarded, and is sent again when there is room`() {
        var cluster = Cluster()
        cluster.settings.allow(payloadBytesMax: 1 << 20)
        cluster.startSequencer()
        cluster.addNode(1, store: "list")
        cluster.isDiskSlow = true
        let long = String(repeating: "x", count: 1 << 20)
        // A node that keeps to its window never gets here. This one ignores its window.
        for _ in 0..<8 { cluster.dispatch([long], to: "list/*", from: 1) }
        let discarded = cluster.published.filter {
            if case .send(.expected(let expected), _) = $0 {
                expected.reason == .full
            } else {
                false
            }
        }
        #expect(!discarded.isEmpty)
        cluster.finishAppends()
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.texts(of: "list").count == 8)
        #expect(cluster.nodes[1]?.outcomes.count == 8)
    }

    @Test func `a node knows when its window is full`() throws {
        var cluster = Cluster.twoNodes()
        cluster.isDiskSlow = true
        let window = Int(cluster.settings.windowBytes)
        #expect(cluster.nodes[1]?.machine.canSubmit(bytes: window) == true)
        cluster.dispatch(["x"], to: "list/*", from: 1)
        #expect(cluster.nodes[1]?.machine.canSubmit(bytes: window) == false)
        cluster.finishAppends()
        #expect(cluster.nodes[1]?.machine.canSubmit(bytes: window) == true)
    }

    @Test func `impossible counters change nothing`() throws {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["x"], to: "list/*", from: 1)
        let highest = UInt64(Int64.max) - 1
        var builder = BatchBuilder()
        let target = BatchTarget(
            target: try #require(Target("list/*")), schemaVersion: 1, coding: .json)
        builder.append(target: target, payload: [1])
        let hostile = builder.finish(firstCounter: highest, settled: highest - 1)
        let speaker = cluster.speaker(try #require(cluster.connection(of: 1)))
        cluster.queue.append(.toSequencer(1, Frame.encode(.submit(hostile), by: speaker)))
        let progress = Progress(applied: SequenceNumber(highest), settled: highest)
        cluster.queue.append(.toSequencer(1, Frame.encode(.progress(progress), by: speaker)))
        let last = cluster.disk.last
        cluster.run()
        #expect(cluster.disk.last == last)
    }

    @Test func `messages for a session of another term do not belong to the present one`()
        throws
    {
        var cluster = Cluster.twoNodes()
        cluster.submit(["stale"], to: "list/*", from: 1)
        guard case .toSequencer(_, let frame) = cluster.queue.removeLast() else {
            Issue.record("no submit")
            return
        }
        let message = try Frame.decodeNodeMessage(frame[...])
        let outline = try Frame.outline(ofSubmit: frame[...])
        let connection = ConnectionID(rawValue: 1)
        let stale = cluster.speaker(connection, epoch: Epoch.none)
        let session = cluster.sequencer?.sessions[stale.session]
        let progress = Progress(applied: cluster.disk.last, settled: 1)
        cluster.published.removeAll()
        cluster.handle(.received(message, by: stale, from: connection))
        cluster.handle(
            .unreadableSubmit(outline, .malformed, message: "what", by: stale, from: connection))
        cluster.handle(.received(.progress(progress), by: stale, from: connection))
        #expect(cluster.sequencer?.sessions[stale.session] == session)
        let byes = cluster.published.compactMap { effect -> ByeCode? in
            if case .send(.bye(let bye), _) = effect { bye.code } else { nil }
        }
        #expect(byes == [.rejoin, .rejoin, .rejoin])
        // The node says hello, and submits the batch again.
        cluster.run()
        #expect(cluster.nodes[2]?.texts(of: "list") == ["stale"])
        guard case .committed? = cluster.nodes[1]?.outcomes[1] else {
            Issue.record("no outcome")
            return
        }
    }

    @Test func `an unreadable submit is rejected by its counters, and its node continues`() {
        var cluster = Cluster.twoNodes()
        cluster.dispatch(["1"], to: "list/*", from: 1)
        cluster.submit(["2", "3"], to: "list/*", from: 1)
        guard case .toSequencer(_, let frame) = cluster.queue.removeLast(),
            let outline = try? Frame.outline(ofSubmit: frame[...])
        else {
            Issue.record("no submit")
            return
        }
        let connection = ConnectionID(rawValue: 1)
        cluster.handle(
            .unreadableSubmit(
                outline, .unsupported, message: "an extension",
                by: cluster.speaker(connection, epoch: Epoch(1)), from: connection))
        cluster.dispatch(["4"], to: "list/*", from: 1)
        #expect(cluster.nodes[2]?.texts(of: "list") == ["1", "4"])
        let codes = [UInt64(2), 3].compactMap { counter -> RejectionCode? in
            guard case .rejected(let code, _) = cluster.nodes[1]?.outcomes[counter] else {
                return nil
            }
            return code
        }
        #expect(codes == [.unsupported, .unsupported])
    }

    /// Dispatches one action with a given schema version.
    private func dispatch(
        to target: String, version: UInt32, from node: Int, in cluster: inout Cluster
    ) throws {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(
                target: try #require(Target(target)), schemaVersion: version, coding: .json),
            payload: [0x78])
        cluster.dispatch(&builder, from: node)
        cluster.run()
    }

    private func rejection(_ counter: UInt64, of node: Int, in cluster: Cluster) -> RejectionCode? {
        guard case .rejected(let code, _)? = cluster.nodes[node]?.outcomes[counter] else {
            return nil
        }
        return code
    }

    @Test func `an action newer than its state's version is rejected, and stops no replica`() throws
    {
        var cluster = Cluster.twoNodes()
        // A version with a flipped bit, and versions that no state has.
        for version in [1_073_741_825, 2, 0] as [UInt32] {
            try dispatch(to: "list/*", version: version, from: 1, in: &cluster)
        }
        try dispatch(to: "list/shared", version: 0, from: 1, in: &cluster)
        for counter in 1...4 as ClosedRange<UInt64> {
            #expect(rejection(counter, of: 1, in: cluster) == .schemaVersion)
        }
        cluster.dispatch(["goes on"], to: "list/*", from: 2)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["goes on"])
        // A newer bridge changes nothing as long as a store has an older version.
        cluster.nodes[2]?.bridge("list", schemaVersion: 3)
        cluster.flushInputs(of: 2)
        cluster.run()
        try dispatch(to: "list/*", version: 3, from: 1, in: &cluster)
        #expect(rejection(5, of: 1, in: cluster) == .schemaVersion)
    }

    @Test func `an action may be as new as the oldest bridge of its state`() throws {
        var cluster = Cluster()
        cluster.startSequencer()
        for node in [1, 2] { cluster.addNode(node, named: "node\(node)") }
        cluster.bridge("prefs", schemaVersion: 3, on: 1)
        try dispatch(to: "prefs/*", version: 3, from: 1, in: &cluster)
        #expect(cluster.nodes[1]?.outcomes[1] != nil && rejection(1, of: 1, in: cluster) == nil)
        cluster.bridge("prefs", schemaVersion: 2, on: 2)
        try dispatch(to: "prefs/*", version: 3, from: 1, in: &cluster)
        #expect(rejection(2, of: 1, in: cluster) == .schemaVersion)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        try dispatch(to: "prefs/*", version: 3, from: 1, in: &cluster)
        #expect(rejection(3, of: 1, in: cluster) == .schemaVersion)
        // Without a bridge, the newest version of the log counts.
        for node in [1, 2] { cluster.removeNode(node) }
        for _ in 0..<3 { cluster.pass(cluster.settings.silenceMax / 2) }
        cluster.addNode(3, named: "node3")
        try dispatch(to: "prefs/*", version: 3, from: 3, in: &cluster)
        try dispatch(to: "prefs/*", version: 4, from: 3, in: &cluster)
        #expect(cluster.nodes[3]?.outcomes[1] != nil && rejection(1, of: 3, in: cluster) == nil)
        #expect(rejection(2, of: 3, in: cluster) == .schemaVersion)
    }

    @Test(
        arguments: [(2, 0, .schemaVersion), (1, 7, .otherLife)] as [(UInt32, UInt64, RejectionCode)]
    )
    func `a store whose creation is being logged is checked like an existing one`(
        _ version: UInt32, _ life: UInt64, _ code: RejectionCode
    ) throws {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1)
        cluster.bridge("list", on: 1)
        cluster.isDiskSlow = true
        cluster.open("list", on: 1)
        #expect(cluster.sequencer?.directory.beginnings.count == 1)
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(
                target: .store(try #require(StoreName("list"))), life: SequenceNumber(life),
                schemaVersion: version, coding: .json),
            payload: [0x78])
        cluster.dispatch(&builder, from: 1)
        cluster.run()
        cluster.finishAppends()
        guard case .rejected(code, _)? = cluster.nodes[1]?.outcomes[1] else {
            Issue.record("not rejected: \(cluster.nodes[1]?.outcomes ?? [:])")
            return
        }
        // An action with the right version is admitted, and follows the store's creation in the log.
        cluster.dispatch(["fits"], to: "list/*", from: 1)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["fits"])
    }
}
