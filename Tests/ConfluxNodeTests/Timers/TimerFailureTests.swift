import Conflux
import ConfluxNode
import Testing

/// Timers that can't be set, or can't be cancelled.
struct TimerFailureTests {
    private func failure(_ work: () async throws(DispatchError) -> Void) async -> DispatchError? {
        do throws(DispatchError) {
            try await work()
            return nil
        } catch {
            return error
        }
    }

    @Test func `a store that no node replicates keeps no timers, and says so`() async throws {
        let store = Scope().run { ModelStore<Journal>() }
        let set = await failure { () async throws(DispatchError) in
            try await store.dispatch(.roll, after: .zero).receipt()
        }
        #expect(set?.code == .rejected && set?.message.contains("keep a timer") == true)
        let cancelled = await failure { () async throws(DispatchError) in
            try await store.cancelTimer("k")
        }
        #expect(cancelled?.code == .rejected)
        let all = await failure { () async throws(DispatchError) in
            let handle = Scope().run {
                ModelStore<Journal>.actions.dispatch(.roll, at: Timestamp(0))
            }
            try await handle.receipt()
        }
        #expect(all?.code == .rejected && store.dice == [])
    }

    @Test func `a closed store, and the store of a closed node, keep no timers`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(Journal.self, named: "a")
            let other = try await node.store(Journal.self, named: "b")
            let actions = try node.actions(of: Journal.self, named: "b")
            node.close(store)
            let closed = await failure { () async throws(DispatchError) in
                try await store.dispatch(.roll, after: .zero).receipt()
            }
            #expect(closed?.code == .storeClosed)
            let cancelled = await failure { () async throws(DispatchError) in
                try await store.cancelTimer("k")
            }
            #expect(cancelled?.code == .storeClosed)
            await node.close()
            let late = await failure { () async throws(DispatchError) in
                try await other.dispatch(.roll, after: .zero).receipt()
            }
            #expect(late?.code == .notConnected)
            let sent = await failure { () async throws(DispatchError) in
                try await actions.cancelTimer("k")
            }
            #expect(sent?.code == .notConnected)
        }
    }

    @Test func `what the sequencer can't keep is rejected, and says why`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(Journal.self)
            let nowhere = try node.actions(of: Journal.self, named: "nowhere")
            let century = Duration.seconds(101 * 365 * 86_400)
            let handles = [
                (store.dispatch(.roll, after: century), "hundred years"),
                (store.dispatch(.roll, after: .zero, every: .milliseconds(9)), "10 ms"),
                (store.dispatch(.roll, after: .zero, every: .zero), "10 ms"),
                (store.dispatch(.roll, after: .zero, key: ""), "1 to 128 bytes"),
                (
                    store.dispatch(.roll, after: .zero, key: String(repeating: "k", count: 129)),
                    "1 to 128 bytes"
                ),
                (nowhere.dispatch(.roll, after: .zero), "nowhere"),
            ]
            for (handle, reason) in handles {
                let error = await failure { () async throws(DispatchError) in
                    try await handle.receipt()
                }
                #expect(error?.code == .rejected)
                #expect(error?.message.contains(reason) == true, "\(error?.message ?? "taken")")
            }
            try await store.dispatch(.write("end"), after: .seconds(-1)).receipt()
            try await wait(for: store) { $0.lines == ["end"] }
            #expect(store.dice == [])
            await node.close()
        }
    }

    @Test func `a wait for a cancellation ends in time if nobody serves`() async throws {
        try await withAddress { address in
            let world = try World(bind: address)
            let node = try await world.node { $0.closeTimeout = .zero }
            let store = try await node.store(Journal.self)
            await world.sequencer.stop()
            let error = await failure { () async throws(DispatchError) in
                try await store.cancelTimer("k", within: .milliseconds(50))
            }
            #expect(error?.code == .timedOut)
            await node.close()
        }
    }
}
