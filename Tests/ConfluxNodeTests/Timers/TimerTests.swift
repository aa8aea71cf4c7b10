import Conflux
import ConfluxNode
import Testing

/// Actions that the sequencer dispatches later (rule 26).
struct TimerTests {
    /// Far enough away that nothing here waits for it.
    private static let never = Duration.seconds(86_400)

    /// A node that hosts a journal, and one that hosts nothing.
    private func withJournal(
        _ body: (_ world: World, _ host: Node, _ journal: ModelStore<Journal>, _ node: Node)
            async throws -> Void
    ) async throws {
        try await withWorld { world in
            let host = try await world.node("host")
            let journal = try await host.store(Journal.self)
            let node = try await world.node("other")
            try await body(world, host, journal, node)
            for node in [host, node] { await node.close() }
        }
    }

    @Test func `an action comes later in every process, once, and from no process`() async throws {
        try await withJournal { world, host, journal, node in
            let theirs = try await node.store(Journal.self)
            let commits = theirs.committedActions.values
            let set = try await journal.dispatch(.write("later"), after: .milliseconds(20))
                .receipt()
            try await journal.dispatch(.write("now")).receipt()
            let commit = try await first(of: commits) { commit in
                if case .write("later") = commit.action { true } else { false }
            }
            // Its origin is the timer's.
            #expect(commit.context.origin?.incarnation == Incarnation.none)
            #expect(commit.context.origin?.counter == set.sequence.rawValue)
            #expect(!commit.isOwn)
            #expect(commit.context.timestamp > set.timestamp)
            try await wait(for: journal) { $0.lines.contains("later") }
            // It would come again within the second.
            try await journal.dispatch(.write("end"), after: .milliseconds(100)).receipt()
            for store in [journal, theirs] {
                try await wait(for: store) { $0.lines.contains("end") }
                #expect(store.lines.filter { $0 == "later" }.count == 1)
            }
        }
    }

    @Test func `a time of day that has passed is now, and one to come is waited for`() async throws
    {
        try await withJournal { _, _, journal, _ in
            try await journal.dispatch(.write("late"), at: Timestamp(0), key: "late").receipt()
            let receipt = try await journal.dispatch(.write("begin")).receipt()
            let soon = Timestamp(receipt.timestamp.rawValue + 50_000_000)
            try await journal.dispatch(.write("soon"), at: soon).receipt()
            try await journal.dispatch(.write("never"), at: Timestamp(.max), key: "never").receipt()
            let commits = journal.committedActions.values
            if !journal.lines.contains("soon") {
                let commit = try await first(of: commits) { commit in
                    if case .write("soon") = commit.action { true } else { false }
                }
                #expect(commit.context.timestamp >= soon)
            }
            try await wait(for: journal) { Set($0.lines) == ["begin", "late", "soon"] }
            #expect(try await !journal.cancelTimer("late"))
            #expect(try await journal.cancelTimer("never"))
        }
    }

    @Test func `a timer repeats until it is cancelled, which says whether there was one`()
        async throws
    {
        try await withJournal { _, host, journal, node in
            let actions = try node.actions(of: Journal.self)
            #expect(try await !actions.cancelTimer("tick"))
            try await actions.dispatch(
                .write("tick"), after: .zero, every: .milliseconds(10), key: "tick"
            ).receipt()
            try await wait(for: journal) { $0.lines.count >= 5 }
            #expect(try await actions.cancelTimer("tick", within: .seconds(60)))
            // All that came before the cancellation is applied here then.
            try await host.barrier()
            let count = journal.lines.count
            #expect(try await !journal.cancelTimer("tick"))
            try await journal.dispatch(.write("end"), after: .milliseconds(50)).receipt()
            try await wait(for: journal) { $0.lines.last == "end" }
            #expect(journal.lines.count == count + 1)
        }
    }

    @Test func `a timer replaces the one with its key, whichever process has set it`() async throws
    {
        try await withJournal { _, host, journal, node in
            let actions = try node.actions(of: Journal.self)
            try await actions.dispatch(.write("first"), after: Self.never, key: "k").receipt()
            try await journal.dispatch(.write("second"), after: .milliseconds(10), key: "k")
                .receipt()
            // The same key is another timer's for another store.
            let other = try await host.store(Journal.self, named: "other")
            try await other.dispatch(.write("third"), after: Self.never, key: "k").receipt()
            try await wait(for: journal) { $0.lines == ["second"] }
            #expect(try await !actions.cancelTimer("k"))
            #expect(try await other.cancelTimer("k"))
        }
    }

    @Test func `a timer for all stores of a state reaches those that exist when it fires`()
        async throws
    {
        let scope = Scope()
        try await withWorld { world in
            let host = try await world.node("host", scope: scope)
            let one = try await host.store(Journal.self, named: "one")
            let node = try await world.node("other")
            let actions = try node.globalActions(of: Journal.self)
            try await actions.dispatch(.write("all"), after: Self.never, key: "k").receipt()
            // A store has keys of its own.
            #expect(try await !one.cancelTimer("k"))
            let handle = scope.run {
                ModelStore<Journal>.actions.dispatch(
                    .write("all"), after: .milliseconds(20), key: "k")
            }
            try await handle.receipt()
            let two = try await host.store(Journal.self, named: "two")
            for store in [one] { try await wait(for: store) { $0.lines == ["all"] } }
            #expect(two.lines == [] || two.lines == ["all"])
            #expect(try await !actions.cancelTimer("k"))
            for node in [host, node] { await node.close() }
        }
    }

    @Test func `a receipt is the timer's, asks no process for an effect, and can be found later`()
        async throws
    {
        try await withWorld { world in
            let host = try await world.node()
            let store = try await host.store(TallyState.self)
            let node = try await world.node()
            let handle = try node.actions(of: TallyState.self).dispatch(
                .fail, after: Self.never, key: "k")
            let receipt = try await handle.receipt()
            // Nobody could answer: the only host is gone.
            await host.close()
            #expect(try await handle.effect(within: .seconds(60)) == receipt)
            let token = try #require(handle.token)
            let other = try await world.node()
            #expect(try await other.outcome(of: token, within: .seconds(60)) == receipt)
            for node in [node, other] { await node.close() }
            withExtendedLifetime(store) {}
        }
    }

    @Test func `a node that comes late has what a timer did, and its own timers`() async throws {
        try await withJournal { world, host, journal, _ in
            try await journal.dispatch(.write("a"), after: .milliseconds(10)).receipt()
            try await wait(for: journal) { $0.lines == ["a"] }
            try await journal.dispatch(.write("b"), after: .milliseconds(30)).receipt()
            let late = try await world.node("late")
            let theirs = try await late.store(Journal.self)
            try await theirs.dispatch(.write("c"), after: .milliseconds(60)).receipt()
            for store in [journal, theirs] {
                try await wait(for: store) { $0.lines.count == 3 }
                #expect(store.lines == ["a", "b", "c"])
            }
            await late.close()
        }
    }

    @Test func `a timer outlives the node that set it`() async throws {
        try await withJournal { _, _, journal, node in
            try await node.actions(of: Journal.self).dispatch(
                .write("left"), after: .milliseconds(200)
            ).receipt()
            await node.close()
            try await wait(for: journal) { $0.lines == ["left"] }
        }
    }

    @Test func `a timer waits while its store is frozen, and ends with its store`() async throws {
        try await withJournal { _, host, journal, node in
            try await journal.dispatch(.write("thawed"), after: .milliseconds(20), key: "k")
                .receipt()
            try await journal.dispatch(
                .write("tick"), after: .milliseconds(20), every: .milliseconds(10), key: "tick"
            ).receipt()
            try await host.freeze(journal)
            let other = try await host.store(Journal.self, named: "other")
            try await other.dispatch(.write("passed"), after: .milliseconds(100)).receipt()
            try await wait(for: other) { $0.lines == ["passed"] }
            let frozen = journal.lines
            try await host.thaw(journal)
            try await wait(for: journal) { $0.lines.count > frozen.count + 2 }
            try await wait(for: journal) { $0.lines.contains("thawed") }
            #expect(journal.lines.filter { $0 == "thawed" }.count == 1)
            #expect(try await !journal.cancelTimer("k"))
            // The next store of the name has none of its timers.
            try await host.drop(journal)
            let next = try await host.store(Journal.self)
            try await next.dispatch(.write("end"), after: .milliseconds(50)).receipt()
            try await wait(for: next) { $0.lines.contains("end") }
            #expect(next.lines == ["end"])
            #expect(try await !next.cancelTimer("tick"))
        }
    }
}
