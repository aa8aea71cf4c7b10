import Conflux
import ConfluxNode
import Testing

/// Asking later, and from another process, what became of an action.
struct TokenTests {
    /// A node that dispatches, and another one that asks.
    private func withNodes(
        _ body: (_ world: World, _ node: Node, _ other: Node) async throws -> Void
    ) async throws {
        try await withWorld { world in
            let host = try await world.node()
            let store = try await host.store(TallyState.self)
            let node = try await world.node()
            let other = try await world.node()
            try await body(world, node, other)
            for node in [node, other, host] { await node.close() }
            withExtendedLifetime(store) {}
        }
    }

    private func failure(
        _ token: DispatchToken?, at node: Node, within limit: Duration = .seconds(60)
    ) async throws -> DispatchError.Code? {
        let token = try #require(token)
        let error = await #expect(throws: DispatchError.self) {
            try await node.outcome(of: token, within: limit)
        }
        return error?.code
    }

    @Test func `another process learns the receipt by the token's text`() async throws {
        try await withNodes { _, node, other in
            let actions = try node.actions(of: TallyState.self)
            for round in 0..<3 {
                let handles = (0..<5).map { actions.dispatch($0 == round ? .fail : .add(1)) }
                for handle in handles {
                    let receipt = try await handle.receipt()
                    let text = try #require(handle.token).description
                    let token = try #require(DispatchToken(text))
                    #expect(try await other.outcome(of: token, within: .seconds(60)) == receipt)
                }
            }
            await node.close()
        }
    }

    @Test func `a rejected action is open until a later one of its node is in the log`()
        async throws
    {
        try await withNodes { _, node, other in
            let nowhere = try node.actions(of: TallyState.self, named: "nowhere").dispatch(.add(1))
            _ = await #expect(throws: DispatchError.self) { try await nowhere.receipt() }
            #expect(
                try await failure(nowhere.token, at: other, within: .milliseconds(100))
                    == .timedOut)
            try await node.actions(of: TallyState.self).dispatch(.add(1)).receipt()
            #expect(try await failure(nowhere.token, at: other) == .rejected)
        }
    }

    @Test func `what a node that has left did not send never comes`() async throws {
        try await withNodes { _, node, other in
            let handle = try node.actions(of: TallyState.self).dispatch(.add(1))
            let receipt = try await handle.receipt()
            let token = try #require(handle.token)
            let next = DispatchToken(
                log: token.log,
                origin: Origin(
                    incarnation: token.origin.incarnation, counter: token.origin.counter + 1),
                since: StoreVersion(sequence: receipt.sequence, epoch: receipt.epoch))
            // The wait is under way, or begins later: it ends with the session in any case.
            async let code = failure(next, at: other)
            await node.close()
            #expect(try await code == .rejected)
        }
    }

    @Test func `a token of another log, or of a lost history, tells nothing`() async throws {
        try await withNodes { _, node, other in
            let handle = try node.actions(of: TallyState.self).dispatch(.add(1))
            let receipt = try await handle.receipt()
            let token = try #require(handle.token)
            let elsewhere = DispatchToken(log: .random(), origin: token.origin, since: token.since)
            #expect(try await failure(elsewhere, at: other) == .outcomeUnknown)
            let lost = DispatchToken(
                log: token.log, origin: token.origin,
                since: StoreVersion(
                    sequence: token.since.sequence, epoch: Epoch(token.since.epoch.rawValue + 1)))
            #expect(try await failure(lost, at: other) == .outcomeUnknown)
            let longer = DispatchToken(
                log: token.log, origin: token.origin,
                since: StoreVersion(
                    sequence: receipt.sequence.advanced(by: 1_000), epoch: receipt.epoch))
            #expect(try await failure(longer, at: other) == .outcomeUnknown)
        }
    }

    @Test func `an action without a node, or that was not sent, has no token`() async throws {
        let store = Scope().run {
            Store<TallyState>(
                state: TallyState(), mutations: TallyMutations(), executor: .immediate)
        }
        #expect(store.actions.dispatch(.add(1)).token == nil)
        try await withNodes { _, node, _ in
            await node.close()
            let late = try node.actions(of: TallyState.self).dispatch(.add(1))
            #expect(late.token == nil)
        }
    }
}
