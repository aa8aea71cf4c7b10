import Conflux
import ConfluxNode
import Dispatch
import Testing

/// Timers as part of a transaction: they are set together with its actions, or not at all.
struct TimerTransactionTests {
    /// Two nodes, and a store that both host.
    private func withJournals(
        _ body: (
            _ node: Node, _ journal: ModelStore<Journal>, _ other: Node,
            _ theirs: ModelStore<Journal>
        ) async throws -> Void
    ) async throws {
        try await withWorld { world in
            let nodes = [try await world.node("alpha"), try await world.node("beta")]
            let journal = try await nodes[0].store(Journal.self)
            let theirs = try await nodes[1].store(Journal.self)
            try await body(nodes[0], journal, nodes[1], theirs)
            for node in nodes { await node.close() }
        }
    }

    @Test func `a transaction dispatches and sets a timer, which another process can cancel`()
        async throws
    {
        try await withJournals { node, journal, other, theirs in
            let done = try await node.transaction { transaction in
                try transaction.dispatch(.write("hold"), to: journal)
                try transaction.dispatch(
                    .write("expire"), to: journal, after: .seconds(86_400), key: "hold")
                try transaction.dispatch(.write("soon"), to: journal, after: .milliseconds(10))
            }
            // The receipt is the last entry's. The actions before it are applied here.
            #expect(journal.lines.first == "hold")
            #expect(done.receipt != nil)
            try await wait(for: theirs) { $0.lines == ["hold", "soon"] }
            #expect(try await theirs.cancelTimer("hold"))
            #expect(try await !journal.cancelTimer("hold"))
            try await other.barrier()
        }
    }

    @Test func `neither happens if a model refuses, the function throws, or a store has changed`()
        async throws
    {
        try await withJournals { node, journal, other, theirs in
            let error = await #expect(throws: DispatchError.self) {
                try await node.transaction { transaction in
                    try transaction.dispatch(.write("expire"), to: journal, after: .zero, key: "k")
                    try transaction.dispatch(.write(""), to: journal)
                }
            }
            #expect(error?.code == .refused)
            await #expect(throws: Missing.self) {
                try await node.transaction { transaction in
                    try transaction.dispatch(.write("expire"), to: journal, after: .zero, key: "k")
                    throw Missing()
                }
            }
            let conflict = await #expect(throws: DispatchError.self) {
                try await node.transaction(attempts: 1) { transaction in
                    try transaction.dispatch(.write("expire"), to: journal, after: .zero, key: "k")
                    // Ordered first, whatever this node has applied by then.
                    let written = DispatchSemaphore(value: 0)
                    theirs.core.dispatchTracked(.write("first")).whenEnded { _ in written.signal() }
                    written.wait()
                }
            }
            #expect(conflict?.code == .conflict)
            // A key that no sequencer takes stops the actions, too.
            let rejected = await #expect(throws: DispatchError.self) {
                try await node.transaction(attempts: 1) { transaction in
                    try transaction.dispatch(.write("hold"), to: journal)
                    try transaction.dispatch(.write("expire"), to: journal, after: .zero, key: "")
                }
            }
            #expect(rejected?.code == .rejected)
            #expect(try await !journal.cancelTimer("k"))
            for node in [node, other] { try await node.barrier() }
            #expect(journal.lines == ["first"] && theirs.lines == ["first"])
        }
    }

    @Test func `a transaction may only set timers, on condition of what it has read`() async throws
    {
        try await withJournals { node, journal, _, theirs in
            let done = try await node.transaction { transaction in
                let count = try transaction.read(journal).lines.count
                try transaction.dispatch(
                    .write("\(count)"), to: journal, after: .zero, key: "count")
                return count
            }
            #expect(done.value == 0 && done.receipt != nil)
            for store in [journal, theirs] { try await wait(for: store) { $0.lines == ["0"] } }
            try await journal.dispatch(.write("end")).receipt()
            #expect(journal.lines == ["0", "end"])
        }
    }
}
