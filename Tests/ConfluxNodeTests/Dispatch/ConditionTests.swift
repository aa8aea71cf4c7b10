import Conflux
import ConfluxNode
import Testing

/// Actions on condition that their store has not changed (rule 24).
struct ConditionTests {
    @Test func `of many nodes that count up at the same version, each number is taken once`()
        async throws
    {
        try await withWorld { world in
            let nodes = [
                try await world.node("alpha"), try await world.node("beta"),
                try await world.node("gamma"),
            ]
            // Each reads the number, and writes the next one, on condition that nothing has changed.
            let counts = try await withThrowingTaskGroup(of: [Int].self) { group in
                for node in nodes {
                    let store = try await node.store(TallyState.self)
                    group.addTask {
                        var written: [Int] = []
                        while written.count < 20 {
                            let version = store.version
                            let next = store.computed.count + 1
                            do throws(DispatchError) {
                                _ = try await store.dispatch(.add(1), ifUnchangedSince: version)
                                    .receipt()
                                written.append(next)
                            } catch {
                                guard error.code == .conflict else { throw error }
                                #expect(
                                    error.version.map { $0.sequence > version.sequence } == true)
                                // What contradicted may not be applied here yet.
                                try await node.barrier()
                            }
                        }
                        return written
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(counts.sorted() == Array(1...60))
            for node in nodes { await node.close() }
        }
    }

    @Test func `a part of a model is read together with its version`() async throws {
        try await withWorld { world in
            let node = try await world.node("alpha")
            let hall = try await node.store(Hall.self)
            try await hall.dispatch(.reprice(20)).receipt()
            let (price, version) = await hall.read { $0.price }
            #expect(price == 20 && version == hall.version)
            try await hall.dispatch(.reprice(30), ifUnchangedSince: version).receipt()
            let error = await #expect(throws: DispatchError.self) {
                try await hall.dispatch(.reprice(40), ifUnchangedSince: version).receipt()
            }
            #expect(error?.code == .conflict && error?.version == hall.version)
            #expect(hall.price == 30)
            await node.close()
        }
    }

    /// The model of the samples.
    private struct Hall: Model {
        static let name = "hall"
        var price = 0
        enum Action: Codable, Sendable { case reprice(Int) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if case .reprice(let price) = action { self.price = price }
        }
    }

    @Test func `after a conflict, the present version holds, even behind a freeze`() async throws {
        try await withWorld { world in
            let alpha = try await world.node("alpha")
            let beta = try await world.node("beta")
            let store = try await alpha.store(TallyState.self)
            let theirs = try await beta.store(TallyState.self)
            let receipt = try await store.actions.dispatch(.add(1)).receipt()
            #expect(store.version == StoreVersion(sequence: receipt.sequence, epoch: receipt.epoch))
            let former = store.version
            try await beta.freeze(theirs)
            try await beta.thaw(theirs)
            let error = await #expect(throws: DispatchError.self) {
                try await store.dispatch(.add(2), ifUnchangedSince: former).receipt()
            }
            #expect(error?.code == .conflict && error?.receipt == nil)
            try await alpha.barrier()
            #expect(error?.version == store.version)
            _ = try await store.dispatch(.add(4), ifUnchangedSince: store.version).receipt()
            #expect(store.computed.count == 5)
            // A node that opens the store now has a version that holds, too.
            let gamma = try await world.node("gamma")
            let late = try await gamma.store(TallyState.self)
            _ = try await late.dispatch(.add(8), ifUnchangedSince: late.version).receipt()
            // And so has a node that does not host it, from a receipt.
            let last = try await late.dispatch(.add(16), ifUnchangedSince: late.version).receipt()
            let delta = try await world.node("delta")
            let actions = try delta.actions(of: TallyState.self)
            let version = StoreVersion(sequence: last.sequence, epoch: last.epoch)
            let next = try await actions.dispatch(.add(32), ifUnchangedSince: version).receipt()
            try await alpha.wait(for: next)
            #expect(store.computed.count == 61)
            let again = await #expect(throws: DispatchError.self) {
                try await actions.dispatch(.add(64), ifUnchangedSince: version).receipt()
            }
            #expect(again?.version?.sequence == next.sequence)
            for node in [alpha, beta, gamma, delta] { await node.close() }
        }
    }

    @Test func `middleware of a store sees its actions with a condition, and may stop them`()
        async throws
    {
        let scope = Scope()
        try await withWorld { world in
            let node = try await world.node("alpha", scope: scope)
            let store = try await node.store(TallyState.self)
            _ = try await store.actions.dispatch(.add(1)).receipt()
            let interceptor = Interceptor()
            interceptor.register(TallyState.Action.self) { $0 == .add(2) ? .stop : .pass }
            _ = scope.use(interceptor, for: store)
            let error = await #expect(throws: DispatchError.self) {
                try await store.dispatch(.add(2), ifUnchangedSince: store.version).receipt()
            }
            #expect(error?.code == .intercepted)
            _ = try await store.dispatch(.add(4), ifUnchangedSince: store.version).receipt()
            #expect(store.computed.count == 5)
            await node.close()
        }
    }

    @Test func `a condition needs one store that a node replicates`() async throws {
        let local = Store<TallyState>(
            state: TallyState(), mutations: TallyState.mutations, executor: .immediate)
        #expect(local.version == StoreVersion(sequence: .zero))
        let error = await #expect(throws: DispatchError.self) {
            try await local.dispatch(.add(1), ifUnchangedSince: local.version).receipt()
        }
        #expect(error?.message.contains("No node replicates this store") == true)
        let scope = Scope()
        let all = await scope.run {
            await #expect(throws: DispatchError.self) {
                try await Store<TallyState>.actions.dispatch(
                    .add(1), ifUnchangedSince: local.version
                )
                .receipt()
            }
        }
        #expect(all?.message.contains("A condition is about one store") == true)
        #expect(local.computed.count == 0)
        try await withWorld { world in
            let node = try await world.node("alpha")
            let store = try await node.store(TallyState.self)
            node.close(store)
            let closed = await #expect(throws: DispatchError.self) {
                try await store.dispatch(.add(1), ifUnchangedSince: store.version).receipt()
            }
            #expect(closed?.code == .storeClosed)
            await node.close()
        }
    }

    @Test func `a number that no log can have is answered, and disturbs no other action`()
        async throws
    {
        try await withWorld { world in
            let node = try await world.node("alpha")
            let store = try await node.store(TallyState.self)
            let highest = StoreVersion(
                sequence: SequenceNumber(.max), epoch: Epoch(.max))
            let before = store.actions.dispatch(.add(1))
            let impossible = store.dispatch(.add(2), ifUnchangedSince: highest)
            let behind = store.actions.dispatch(.add(4))
            let error = await #expect(throws: DispatchError.self) {
                try await impossible.receipt()
            }
            #expect(error?.code == .conflict)
            _ = try await before.receipt()
            _ = try await behind.receipt()
            #expect(store.computed.count == 5)
            // The same number in another request.
            await #expect(throws: NodeError.self) {
                try await node.skip(SequenceNumber(.max), for: Target("tally/shared")!)
            }
            _ = try await store.actions.dispatch(.add(8)).receipt()
            await node.close()
        }
    }

    @Test func `the text of a version is its number and its epoch`() {
        let version = StoreVersion(sequence: SequenceNumber(17), epoch: Epoch(512))
        #expect("\(version)" == "17@512" && StoreVersion("17@512") == version)
        #expect(StoreVersion("17") == StoreVersion(sequence: SequenceNumber(17)))
        for text in ["", "@", "17@", "@5", "-1", "+1", "1@2@3", "1 ", "0x1", "9223372036854775808"]
        {
            #expect(StoreVersion(text) == nil, "\(text)")
        }
    }
}
