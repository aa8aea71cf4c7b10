import ConfluxNode
import ConfluxSequencer
import Dispatch
import Testing

/// The metrics of a running sequencer and a running node.
struct MetricsTests {
    /// Waits for metrics. They are published about once a second without a notification, so they are read
    /// after each answer of the sequencer.
    private func wait<Metrics: Sendable>(
        _ node: Node, for metrics: @escaping @Sendable () -> Metrics,
        until isWanted: @escaping @Sendable (Metrics) -> Bool
    ) async throws -> Metrics {
        try await withDeadline {
            while true {
                let present = metrics()
                if isWanted(present) { return present }
                _ = try await node.sequencerStatus()
            }
        }
    }

    @Test func `outcomes are counted as reported to their dispatchers, with the time taken`()
        async throws
    {
        try await withWorld { world in
            let node = try await world.node("alpha")
            let store = try await node.store(TallyState.self)
            for _ in 1...5 { _ = try await store.actions.dispatch(.add(1)).receipt() }
            _ = await #expect(throws: DispatchError.self) {
                try await store.actions.dispatch(.fail).receipt()
            }
            let metrics = try await wait(node, for: { node.metrics() }) { metrics in
                guard metrics.outcomes[.refused] == 1, metrics.unsettled == 0 else { return false }
                return metrics.applied > .zero && metrics.applied == metrics.last
            }
            #expect(metrics.outcomes == [.receipt: 5, .refused: 1])
            #expect(metrics.actions == 6)
            #expect(metrics.receiptLatency.count == 6)
            #expect(metrics.receiptLatency.sum > .zero)
            #expect(metrics.isConnected && metrics.lagEntries == 0)
            #expect(metrics.stores.map(\.description) == ["tally/shared"])
            let outbox = metrics.bounds.first { $0.name == "outboxBytesMax" }
            #expect(outbox?.level == 0 && outbox?.most == node.settings.outboxBytesMax)
            #expect(metrics.bounds.allSatisfy { $0.level <= $0.most }, "\(metrics.bounds)")
            await node.close()
            #expect(!node.metrics().isConnected)
        }
    }

    @Test func `a sequencer counts its commits, and knows the hosts`() async throws {
        try await withWorld { world in
            let node = try await world.node("alpha")
            let store = try await node.store(TallyState.self)
            for _ in 1...5 { _ = try await store.actions.dispatch(.add(1)).receipt() }
            let sequencer = world.sequencer
            let metrics = try await wait(node, for: { sequencer.metrics() }) { metrics in
                guard metrics.tally.entries >= 7, !metrics.lags.isEmpty else { return false }
                return metrics.lagMax.entries == 0
            }
            #expect(metrics.isServing && metrics.terms == 1)
            #expect(metrics.tally.entries == metrics.last.rawValue)
            #expect(metrics.tally.commits <= metrics.tally.entries)
            #expect(metrics.tally.commitBytes > metrics.tally.entries)
            #expect(metrics.commitLatency.count == metrics.appendLatency.count)
            #expect(metrics.lags.map(\.name?.text) == ["alpha"])
            #expect(metrics.replicas == 1)
            #expect(metrics.liveSessions == 1 && metrics.stores == 1)
            #expect(metrics.livenessFaults.isEmpty && metrics.readinessFaults.isEmpty)
            #expect(metrics.bounds.allSatisfy { $0.level <= $0.most }, "\(metrics.bounds)")
            await node.close()
            await sequencer.stop()
            #expect(sequencer.metrics().readinessFaults == ["no term is serving"])
        }
    }

    @Test func `metrics can be read while a reducer is blocked, and report it`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(Turnstile.self)
            let handle = store.dispatch(.pass)
            let stuck = try await wait(node, for: { node.metrics() }) { metrics in
                metrics.applyJobAge.map { $0 > .milliseconds(200) } == true
            }
            let age = try #require(stuck.applyJobAge)
            // On a busy machine, much more time may have passed.
            let isLong = age > NodeMetrics.busyMax
            #expect(stuck.isConnected && stuck.livenessFaults.isEmpty != isLong)
            Turnstile.gate.signal()
            _ = try await withDeadline { try await handle.receipt() }
            let after = try await wait(node, for: { node.metrics() }) { $0.applyJobAge == nil }
            #expect(after.outcomes == [.receipt: 1])
            #expect(after.receiptLatency.sum > .milliseconds(200))
            await node.close()
        }
    }
}

/// A model whose reducer blocks until it is released.
private struct Turnstile: Model {
    static let name = "turnstile"
    static let gate = DispatchSemaphore(value: 0)
    var passed = 0
    enum Action: Codable, Sendable { case pass }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        // Not forever, in case the test fails.
        _ = Self.gate.wait(timeout: .now() + 60)
        passed += 1
    }
}
