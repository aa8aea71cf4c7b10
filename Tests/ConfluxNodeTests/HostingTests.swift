import ConfluxNode
import Dispatch
import Testing

/// Opening and closing stores while other things happen.
struct HostingTests {
    @Test func `stores of one state can be opened at once`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let names = (0..<8).map { "s\($0)" }
            let opened = try await withDeadline {
                try await withThrowingTaskGroup(of: ModelStore<Journal>.self) { group in
                    for name in names {
                        group.addTask { try await node.store(Journal.self, named: name) }
                    }
                    var stores: [ModelStore<Journal>] = []
                    for try await store in group { stores.append(store) }
                    return stores
                }
            }
            #expect(opened.count == names.count)
            await node.close()
        }
    }

    @Test func `a store that is closed and opened again at once is open`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let busy = try await node.store(TallyState.self, named: "busy")
            let victim = try await node.store(TallyState.self, named: "victim")
            try await victim.actions.dispatch(.add(3)).receipt()
            // Meanwhile the applying thread is in user code.
            let entered = AsyncStream.makeStream(of: Void.self)
            let gate = DispatchSemaphore(value: 0)
            let observation = busy.computed.counts.observe { count in
                guard count == 1 else { return }
                entered.continuation.yield()
                gate.wait()
            }
            let blocked = busy.actions.dispatch(.add(1))
            _ = try await first(of: entered.stream) { true }
            node.close(victim)
            let reopening = Task {
                try await withDeadline { try await node.store(TallyState.self, named: "victim") }
            }
            // Each answer shows that the link has processed the earlier posts.
            for _ in 0..<200 { _ = await node.status }
            gate.signal()
            let again = try await reopening.value
            #expect(again.computed.count == 3)
            try await again.actions.dispatch(.add(1)).receipt()
            #expect(again.computed.count == 4)
            let stores = try await node.sequencerStatus().stores
            #expect(stores.first { $0.store.description == "tally/victim" }?.hosts == 1)
            try await blocked.receipt()
            observation.dispose()
            await node.close()
        }
    }

    @Test func `a closed store does not get global dispatches`() async throws {
        try await withWorld { world in
            let scope = Scope()
            let node = try await world.node(scope: scope)
            let store = try await node.store(TallyState.self)
            let other = try await node.store(TallyState.self, named: "other")
            node.close(store)
            let handle = scope.run { Store<TallyState>.actions.dispatch(.add(5)) }
            try await handle.receipt()
            #expect(other.computed.count == 5)
            #expect(store.computed.count == 0)
            await node.close()
        }
    }

    @Test func `closing waits until a store with its own queue has applied its actions`()
        async throws
    {
        try await withWorld { world in
            // Longer than the checks below take on a busy machine.
            let node = try await world.node { $0.closeTimeout = .seconds(120) }
            let observer = try await world.node()
            let queue = DispatchQueue(label: "slow")
            let store = try await node.store(Journal.self, executor: .queue(queue))
            let there = try await observer.store(Journal.self)
            queue.suspend()
            let handle = store.dispatch(.write("x"))
            try await wait(for: there) { $0.lines == ["x"] }
            let closing = Task { await node.close() }
            // Once the node has begun to leave, the outbox accepts no more actions.
            for _ in 0..<200 { _ = await node.status }
            queue.resume()
            try await handle.receipt()
            #expect(store.lines == ["x"])
            await closing.value
            await observer.close()
        }
    }

    @Test func `a wait for a store that another task opens can be cancelled`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            // The sequencer is not stopped: it would give up its port, and another test might get it.
            let queue = DispatchQueue(label: "stuck")
            queue.suspend()
            let opener = Task { try await node.store(TallyState.self, executor: .queue(queue)) }
            // Longer than the checks below take on a busy machine.
            let waiter = Task {
                try await node.store(
                    TallyState.self, executor: .queue(queue), patience: .seconds(120))
            }
            for _ in 0..<50 { _ = await node.status }
            waiter.cancel()
            let error = await #expect(throws: NodeError.self) { try await waiter.value }
            #expect(error?.code == .cancelled)
            opener.cancel()
            _ = try? await opener.value
            queue.resume()
            await node.close()
        }
    }

    @Test func `opening a store whose executor never runs can be cancelled`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let queue = DispatchQueue(label: "stuck")
            queue.suspend()
            let ended = AsyncStream.makeStream(of: (any Error)?.self)
            let opener = Task {
                do {
                    _ = try await node.store(TallyState.self, executor: .queue(queue))
                    ended.continuation.yield(nil)
                } catch {
                    ended.continuation.yield(error)
                }
            }
            // The state is bridged before the store is asked for its initial state.
            for _ in 0..<200 { _ = await node.status }
            opener.cancel()
            let error: (any Error)?
            do {
                error = try await first(of: ended.stream) { _ in true }
            } catch {
                queue.resume()
                throw error
            }
            queue.resume()
            #expect((error as? NodeError)?.code == .cancelled)
            let store = try await node.store(TallyState.self)
            try await store.actions.dispatch(.add(1)).receipt()
            #expect(store.computed.count == 1)
            await node.close()
        }
    }

    @Test func `two nodes do not bridge one state in one scope`() async throws {
        try await withWorld { world in
            let scope = Scope()
            let first = try await world.node(scope: scope)
            let second = try await world.node(scope: scope)
            try await first.bridge(TallyState.self)
            let error = await #expect(throws: NodeError.self) {
                try await second.bridge(TallyState.self)
            }
            #expect(error?.code == .alreadyHosted)
            let store = scope.run {
                Store<TallyState>(state: .init(), mutations: .init(), executor: .immediate)
            }
            try await scope.run {
                _ = try await Store<TallyState>.actions.dispatch(.add(1)).receipt()
            }
            #expect(store.computed.count == 1)
            // Once the first node is closed, the second one may bridge the state.
            await first.close()
            try await second.bridge(TallyState.self)
            try await scope.run {
                _ = try await Store<TallyState>.actions.dispatch(.add(1)).receipt()
            }
            #expect(store.computed.count == 2)
            // If the first node now ends its bridge, the second one's bridge stays.
            first.unbridge(TallyState.self)
            let third = try await world.node()
            let there = try await third.store(TallyState.self, named: "there")
            try await scope.run {
                _ = try await Store<TallyState>.actions.dispatch(.add(1)).receipt()
            }
            #expect(store.computed.count == 3)
            try await there.actions.dispatch(.add(0)).receipt()
            #expect(there.computed.count == 1)
            await third.close()
            await second.close()
        }
    }
}
