import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The events that states handle, as the log and a checkpoint say it.
struct HandledEventTests {
    private let log = LogID(high: 1, low: 2)
    private let cart = Name("cart")!
    private let stock = Name("stock")!
    private let paid = Name("paid")!

    private func commit(_ first: UInt64, _ add: (inout CommitBuilder) -> Void) throws -> Commit {
        var builder = CommitBuilder(
            log: log, epoch: Epoch(1), predecessor: first == 1 ? .none : Epoch(1),
            first: SequenceNumber(first))
        add(&builder)
        return try Commit.decode(
            body: builder.finish(timestamp: Timestamp(1)).dropFirst(Frame.size))
    }

    private func event(of states: [Name], isAtomic: Bool = true, beside own: Name? = nil) -> Batch {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .event(paid, of: states), schemaVersion: 1, coding: .json),
            payload: Array("{}".utf8))
        if let own {
            _ = builder.row(
                for: BatchTarget(target: .state(own), schemaVersion: 1, coding: .json))
        }
        return builder.finish(firstCounter: 1, settled: 0, isAtomic: isAtomic)
    }

    private func state() throws -> LogState {
        var state = LogState(log: log)
        try state.apply(
            commit(1) {
                $0.append(.claim(epoch: Epoch(1), nonce: Nonce(high: 0, low: 1)))
                $0.append(.handles(stock, events: [paid]), by: Name("ops"))
                $0.append(.handles(cart, events: [paid, Name("left")!]))
                $0.append(.handles(cart, events: [paid]))
                $0.append(event(of: [cart]), from: .none)
            }, byteCount: 1)
        return state
    }

    @Test func `a checkpoint has the events that states handle`() throws {
        let state = try state()
        let restored = try LogState(checkpoint: state.encoded()[...])
        #expect(restored == state)
        try restored.directory.checkInvariants()
        #expect(restored.directory.states.handlers[paid] == [cart, stock])
        #expect(restored.directory.states.handlers[Name("left")!] == [cart])
        // An event counts for each state that takes it.
        #expect(restored.directory.states[cart]?.load.stamp == SequenceNumber(5))
        #expect(restored.directory.states[stock]?.load.stamp == .zero)
    }

    @Test func `the sequencer names the states that handle an event`() throws {
        let directory = try state().directory
        let named = { (batch: Batch) in directory.naming(batch).targets[0].target }
        #expect(named(event(of: [])) == .event(paid, of: [cart, stock]))
        // What a peer claims counts for nothing.
        #expect(named(event(of: [Name("other")!])) == .event(paid, of: [cart, stock]))
        #expect(named(event(of: [], beside: stock)) == .event(paid, of: [cart]))
        #expect(
            named(event(of: [], isAtomic: false, beside: stock))
                == .event(paid, of: [cart, stock]))
    }

    @Test func `an event is kept aside for the states that handle it`() throws {
        for (store, isKept) in [(cart, true), (stock, false)] {
            var kept = AsideEntries(
                StoreName(state: store, instance: .shared), life: SequenceNumber(1), after: .zero)
            kept.add(try commit(2) { $0.append(event(of: [cart]), from: Incarnation(1)) })
            #expect(kept.bytes.isEmpty != isKept)
        }
    }

    @Test func `states and events are bounded`() throws {
        var states = try state().directory.states
        let many = (0..<StateTable.eventsMax).map { Name("e\($0)")! }
        #expect(states.hasRoom(for: many, in: stock) == false)
        #expect(states.hasRoom(for: Array(many.dropLast()), in: stock))
        for number in 2..<StateTable.handlersMax {
            _ = states.see(Name("s\(number)")!, by: nil)
            states.handle([paid], in: Name("s\(number)")!)
        }
        #expect(states.hasRoom(for: [paid], in: Name("one.more")!) == false)
        #expect(states.hasRoom(for: [paid], in: stock))
    }
}
