import ConfluxNode
import ConfluxSequencer
import Testing

struct ReplicationTests {
    @Test func `a store is the same in two nodes`() async throws {
        try await withWorld { world in
            let alpha = try await world.node("alpha")
            let beta = try await world.node("beta")
            let here = try await alpha.store(Journal.self)
            let there = try await beta.store(Journal.self)
            for line in 0..<50 { here.dispatch(.write("\(line)")) }
            let receipt = try await here.dispatch(.write("last")).receipt()
            #expect(here.lines.count == 51)
            try await wait(for: there) { $0.lines.count == 51 }
            #expect(there.lines == here.lines)
            #expect(receipt.log != nil && receipt.epoch > .none)
            await alpha.close()
            await beta.close()
        }
    }

    @Test func `a receipt means that this node has applied the action`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            for round in 1...200 {
                try await store.actions.dispatch(.add(1)).receipt()
                #expect(store.computed.count == round)
            }
            await node.close()
        }
    }

    @Test func `a refused action changes nothing and its error carries the receipt`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            let error = await #expect(throws: DispatchError.self) {
                try await store.actions.dispatch(.fail).receipt()
            }
            #expect(error?.code == .refused)
            #expect(error?.receipt != nil)
            #expect(error?.reason is Refusal)
            await node.close()
        }
    }

    @Test func `static dispatch reaches the stores of every bridged process, call sites unchanged`()
        async throws
    {
        try await withWorld { world in
            let scopes = [Scope(), Scope()]
            let stores = scopes.map { scope in
                scope.run {
                    Store<TallyState>(state: .init(), mutations: .init(), executor: .immediate)
                }
            }
            let first = try await world.node(scope: scopes[0])
            let second = try await world.node(scope: scopes[1])
            try await first.bridge(TallyState.self)
            try await second.bridge(TallyState.self)
            let done = stores[1].computed.counts.values
            scopes[0].run { Store<TallyState>.actions.add(5) }
            try await scopes[0].run {
                _ = try await Store<TallyState>.actions.dispatch(.add(2)).receipt()
            }
            #expect(stores[0].computed.count == 7)
            _ = try await ConfluxNodeTests.first(of: done) { $0 == 7 }
            await first.close()
            await second.close()
        }
    }

    @Test func `a late joiner has the whole state when its store is opened`() async throws {
        try await withWorld { world in
            let alpha = try await world.node("alpha")
            let store = try await alpha.store(Journal.self, named: "book")
            for line in 0..<500 { store.dispatch(.write("\(line)")) }
            try await store.dispatch(.roll).receipt()
            let beta = try await world.node("beta")
            let late = try await beta.store(Journal.self, named: "book")
            #expect(late.value.lines == store.value.lines)
            #expect(late.value.dice == store.value.dice)
            await alpha.close()
            await beta.close()
        }
    }

    @Test func `actions of two states in one batch end each in its own outcome`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let tally = try await node.store(TallyState.self)
            let journal = try await node.store(Journal.self)
            var handles: [(handle: DispatchHandle, isRefused: Bool)] = []
            for number in 0..<300 {
                let isRefused = number % 7 == 3
                handles.append((tally.actions.dispatch(.add(1)), false))
                handles.append(
                    (journal.dispatch(.write(isRefused ? "" : "\(number)")), isRefused))
                handles.append((tally.actions.dispatch(isRefused ? .fail : .add(1)), isRefused))
            }
            for (index, entry) in handles.enumerated() {
                if entry.isRefused {
                    await #expect(throws: DispatchError.self, "\(index)") {
                        try await entry.handle.receipt()
                    }
                } else {
                    try await entry.handle.receipt()
                }
            }
            let refused = handles.count { $0.isRefused } / 2
            #expect(tally.computed.count == 600 - refused)
            #expect(journal.value.lines.count == 300 - refused)
            await node.close()
        }
    }

    @Test func `opening a name twice gives the same store, another type is refused`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            async let one = node.store(Journal.self, named: "x")
            async let two = node.store(Journal.self, named: "x")
            let (first, second) = try await (one, two)
            #expect(first === second)
            await node.close()
        }
    }

    @Test func `an existing store is replicated with the state that it has`() async throws {
        try await withWorld { world in
            let scope = Scope()
            let store = scope.run {
                Store<TallyState>(state: .init(), mutations: .init(), executor: .immediate)
            }
            store.actions.add(10)
            let node = try await world.node(scope: scope)
            try await node.replicate(store)
            try await store.actions.dispatch(.add(1)).receipt()
            let other = try await world.node()
            let copy = try await other.store(TallyState.self)
            #expect(copy.computed.count == 11)
            await node.close()
            await other.close()
        }
    }

    @Test func `instance dispatch on a replicated store returns before the commit`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(TallyState.self, named: "a")
            let other = try await node.store(TallyState.self, named: "b")
            let handle = store.actions.dispatch(.add(1))
            try await handle.receipt()
            #expect(store.computed.count == 1)
            #expect(other.computed.count == 0)
            await node.close()
        }
    }

    @Test func `a store with its own queue applies in order, and its receipt follows`()
        async throws
    {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(
                Journal.self, executor: .queue(.global()))
            var last: DispatchHandle?
            for line in 0..<1_000 { last = store.dispatch(.write("\(line)")) }
            try await last?.receipt()
            #expect(store.lines == (0..<1_000).map(String.init))
            await node.close()
        }
    }

    @Test func `a closed store no longer changes, and its dispatches fail`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            try await store.actions.dispatch(.add(1)).receipt()
            node.close(store)
            let error = await #expect(throws: DispatchError.self) {
                try await store.actions.dispatch(.add(1)).receipt()
            }
            #expect(error?.code == .storeClosed)
            #expect(store.computed.count == 1)
            let again = try await node.store(TallyState.self)
            #expect(again.computed.count == 1)
            await node.close()
        }
    }

    @Test func `many concurrent dispatchers each keep their order`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(Journal.self)
            await withTaskGroup(of: Void.self) { group in
                for writer in 0..<8 {
                    group.addTask {
                        var last: DispatchHandle?
                        for line in 0..<500 { last = store.dispatch(.write("\(writer) \(line)")) }
                        _ = try? await last?.receipt()
                    }
                }
            }
            for writer in 0..<8 {
                let own = store.lines.filter { $0.hasPrefix("\(writer) ") }
                #expect(own == (0..<500).map { "\(writer) \($0)" })
            }
            await node.close()
        }
    }

    @Test func `closing waits for the outcomes of dispatched actions`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            let handles = (0..<5_000).map { _ in store.actions.dispatch(.add(1)) }
            await node.close()
            for handle in handles { try await handle.receipt() }
            let error = await #expect(throws: DispatchError.self) {
                try await store.actions.dispatch(.add(1)).receipt()
            }
            #expect(error?.code == .notConnected)
        }
    }
}
