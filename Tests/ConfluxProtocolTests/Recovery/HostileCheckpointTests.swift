import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Any bytes decode to a checkpoint or to a typed error, and a decoded checkpoint is consistent.
struct HostileCheckpointTests {
    private func sample(timers count: UInt64 = 0) throws -> [UInt8] {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list/second")
        cluster.dispatch(["1", "nowhere/*:2", "3"], to: "list/*", from: 1)
        cluster.dispatch(["4"], to: "list/*", from: 2)
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        cluster.input(.leave, to: 2)
        cluster.run()
        var logState = try cluster.disk.logState(commits: cluster.disk.bodies.count)
        for number in stride(from: 1, through: count, by: 1) {
            var actions = BatchBuilder()
            actions.append(
                target: BatchTarget(
                    target: try #require(Target("list")), schemaVersion: 1, coding: .json),
                payload: [1])
            let order = TimerOrder(
                key: number == 1 ? "k" : nil, due: .after(.seconds(1)),
                interval: number == 1 ? .seconds(1) : nil,
                actions: actions.finish(firstCounter: 1, settled: 0))
            let isNew = logState.timers.restore(
                TimerTable.Timer(
                    number: SequenceNumber(number), owner: Name("ops"), order: order,
                    due: Timestamp(5)))
            #expect(isNew)
        }
        return logState.encoded()
    }

    @Test func `a checkpoint cut at any byte is an error`() throws {
        let bytes = try sample()
        for length in bytes.indices {
            #expect(throws: WireError.self, "\(length) of \(bytes.count) bytes") {
                try LogState(checkpoint: bytes[..<length])
            }
        }
    }

    @Test func `a checkpoint with any bytes changed is an error, or encodes as it was read`() throws
    {
        let seed = SplitMix64.seed()
        var messages = RandomMessages(seed: seed)
        let whole = try sample(timers: 2)
        func expectErrorOrFold(_ bytes: [UInt8]) {
            guard let logState = try? LogState(checkpoint: bytes[...]) else { return }
            let again = try? LogState(checkpoint: logState.encoded()[...])
            #expect(again == logState, "seed \(seed): \(bytes)")
        }
        for offset in whole.indices {
            for change in [1, 0x10, 0x80, 0xFF] as [UInt8] {
                var bytes = whole
                bytes[offset] ^= change
                expectErrorOrFold(bytes)
            }
        }
        for _ in 0..<1_000 {
            var bytes = whole
            for _ in 0...messages.below(3) {
                let lower = messages.below(bytes.count)
                let upper = min(bytes.count, lower + messages.below(8))
                bytes.replaceSubrange(lower..<upper, with: messages.bytes(8))
                if bytes.isEmpty { bytes = [0] }
            }
            expectErrorOrFold(bytes)
            expectErrorOrFold(Array(whole.prefix(5)) + messages.bytes(300))
        }
    }

    @Test func `additions of a later version are skipped, unless they must be understood`() throws {
        let bytes = try sample(timers: 2)
        let logState = try LogState(checkpoint: bytes[...])
        let optional: [UInt8] = [0x07, 0x00, 2, 0, 0, 0, 9, 9]
        #expect(try LogState(checkpoint: (bytes + optional)[...]) == logState)
        let critical: [UInt8] = [0x07, 0x80, 2, 0, 0, 0, 9, 9]
        #expect(throws: WireError.unsupportedExtension(tag: 0x8007, at: bytes.count)) {
            try LogState(checkpoint: (bytes + critical)[...])
        }
        var later = bytes
        later[4] += 1
        #expect(throws: WireError.self) { try LogState(checkpoint: later[...]) }
    }

    @Test func `a checkpoint whose sessions contradict each other is an error`() throws {
        let logState = try LogState(checkpoint: sample()[...])
        let session = try #require(logState.sessions.all.first { $0.name?.text == "alpha" })
        func expectRefused(_ change: (inout LogState) -> Void, _ what: Comment) {
            var changed = logState
            change(&changed)
            let bytes = changed.encoded()
            #expect(throws: WireError.self, what) { try LogState(checkpoint: bytes[...]) }
        }
        func copy(
            _ incarnation: Incarnation, _ nonce: Nonce, _ name: Name?
        ) -> Session {
            Session(
                incarnation: incarnation, nonce: nonce, name: name, owner: nil, isKeyed: false,
                quietSince: .zero)
        }
        expectRefused(
            { $0.sessions.insert(copy(Incarnation(1), session.nonce, nil)) }, "two of a nonce")
        expectRefused(
            { $0.sessions.insert(copy(Incarnation(1), .none, session.name)) }, "two of a name")
        expectRefused(
            { $0.sessions.insert(copy($0.incarnationAfterEnd, .none, nil)) }, "of the future")
        expectRefused({ $0.last = SequenceNumber(5) }, "outcomes behind the end")
        expectRefused(
            {
                $0.claims.remember(
                    ClaimTable.Claim(epoch: Epoch(1), nonce: .none, first: SequenceNumber(1)))
            }, "claims out of order")
    }
}

extension LogState {
    fileprivate var incarnationAfterEnd: Incarnation { Incarnation(last.rawValue + 1) }
}
