import ConfluxLog
import ConfluxNode
import ConfluxSequencer
import Dispatch
import Synchronization
import Testing

/// Leases between processes, which are nodes here.
struct LeaseTests {
    /// What holders have seen.
    private final class Diary: Sendable {
        let tokens = Mutex<[SequenceNumber]>([])
        let holders = Atomic(0)
    }

    @Test func `one node at a time holds a lease, in the order of the claims`() async throws {
        try await withWorld { world in
            let diary = Diary()
            let workers = (0..<4).map { _ in
                Task {
                    let node = try await world.node()
                    for _ in 0..<5 {
                        let lease = try await node.lease("cashier")
                        let count = diary.holders.add(1, ordering: .relaxed).newValue
                        #expect(count == 1 && lease.isHeld)
                        diary.tokens.withLock { $0.append(lease.token) }
                        diary.holders.subtract(1, ordering: .relaxed)
                        try await lease.release()
                        #expect(!lease.isHeld)
                    }
                    await node.close()
                }
            }
            for worker in workers { try await withDeadline { try await worker.value } }
            let all = diary.tokens.withLock(\.self)
            #expect(all.count == 20 && all == all.sorted())
        }
    }

    @Test func `an action under a lease is taken while it is held, and never after that`()
        async throws
    {
        try await withWorld { world in
            let (one, other) = (try await world.node(), try await world.node())
            let store = try await one.store(TallyState.self)
            let remote = try other.actions(of: TallyState.self)
            let lease = try await one.lease("cashier")
            try await store.dispatch(.add(1), under: lease).receipt()
            try await store.actions.dispatch(.add(1), under: lease).receipt()
            // Whoever has the lease may use it by any node.
            try await remote.dispatch(.add(1), under: lease).effect()
            try await lease.release()
            for handle in [
                store.dispatch(.add(10), under: lease), remote.dispatch(.add(10), under: lease),
            ] {
                let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
                #expect(error?.code == .leaseLost)
            }
            try await one.barrier()
            #expect(store.computed.count == 3)
            await lease.waitUntilOver()
            // A second release is none.
            try await lease.release()
            await one.close()
            await other.close()
        }
    }

    @Test func `a holder reads what the one before has done`() async throws {
        try await withWorld { world in
            let (one, other) = (try await world.node(), try await world.node())
            let store = try await one.store(TallyState.self)
            let replica = try await other.store(TallyState.self)
            let lease = try await one.lease("cashier")
            // The other replica stops behind the first action, unless somebody already holds the lease there.
            let (stops, hasStopped) = AsyncStream<Void>.makeStream()
            let held = DispatchSemaphore(value: 0)
            let observer = replica.committedActions.observe { _ in
                hasStopped.yield()
                _ = held.wait(timeout: .now() + .seconds(1))
                held.signal()
            }
            let next = Task {
                let lease = try await other.lease("cashier")
                let count = replica.computed.count
                held.signal()
                return (lease, count)
            }
            try await store.dispatch(.add(1), under: lease).receipt()
            _ = try await first(of: stops) { _ in true }
            try await store.dispatch(.add(1), under: lease).receipt()
            try await lease.release()
            let (second, count) = try await withDeadline { try await next.value }
            #expect(second.token > lease.token && count == 2)
            observer.dispose()
            await one.close()
            await other.close()
        }
    }

    @Test func `a lease ends with its node, and when nobody keeps it`() async throws {
        try await withWorld { world in
            let (one, other) = (try await world.node(), try await world.node())
            let lease = try await one.lease("cashier")
            let waiting = Task { try await withDeadline { try await other.lease("cashier") } }
            await one.close()
            let second = try await waiting.value
            #expect(second.token > lease.token && second.isHeld)
            do { _ = try await other.lease("short") }
            // Nobody keeps it.
            let third = try await withDeadline { try await other.lease("short") }
            #expect(third.isHeld)
            withExtendedLifetime(lease) {}
            await other.close()
        }
    }

    @Test func `who waits in vain is told so, and leaves the line`() async throws {
        try await withWorld { world in
            let (one, other) = (try await world.node(), try await world.node())
            let lease = try await one.lease("cashier")
            let late = await #expect(throws: DispatchError.self) {
                try await other.lease("cashier", within: .milliseconds(50))
            }
            #expect(late?.code == .timedOut)
            let waiting = Task { try await other.lease("cashier") }
            waiting.cancel()
            let cancelled = await #expect(throws: DispatchError.self) { try await waiting.value }
            #expect(cancelled?.code == .cancelled)
            let none = await #expect(throws: DispatchError.self) {
                try await one.lease("No Name")
            }
            #expect(none?.code == .invalidAction)
            try await lease.release()
            // Neither of the claims that were given up holds it.
            let next = try await withDeadline { try await one.lease("cashier") }
            #expect(next.isHeld)
            // Two leases in opposite order: the limit ends the wait.
            let counter = try await other.lease("counter")
            let crossed = await #expect(throws: DispatchError.self) {
                async let a = one.lease("counter", within: .milliseconds(100))
                async let b = other.lease("cashier", within: .milliseconds(100))
                _ = try await (a, b)
            }
            #expect(crossed?.code == .timedOut)
            #expect(counter.isHeld && next.isHeld)
            await one.close()
            await other.close()
        }
    }

    @Test func `a function runs under a lease, and is cancelled when the lease is lost`()
        async throws
    {
        try await withWorld { world in
            let (one, other) = (try await world.node(), try await world.node())
            let sum = try await one.withLease("cashier") { lease in
                #expect(lease.isHeld)
                return 3
            }
            #expect(sum == 3)
            let begun = AsyncStream<Lease>.makeStream()
            let running = Task {
                try await one.withLease("cashier") { lease in
                    begun.continuation.yield(lease)
                    // It ends only by cancellation.
                    for await _ in AsyncStream<Int>.makeStream().stream {}
                    return Task.isCancelled
                }
            }
            let lease = try await first(of: begun.stream) { _ in true }
            let next = Task { try await withDeadline { try await other.lease("cashier") } }
            try await lease.release()
            #expect(try await withDeadline { try await running.value })
            #expect(try await next.value.isHeld)
            await one.close()
            await other.close()
        }
    }

    @Test(arguments: [false, true])
    func `a function that ends because its lease is lost says so`(isCancelled: Bool) async throws {
        try await withWorld { world in
            let node = try await world.node()
            let begun = AsyncStream<Lease>.makeStream()
            let running = Task {
                try await node.withLease("cashier") { lease in
                    begun.continuation.yield(lease)
                    for await _ in AsyncStream<Int>.makeStream().stream {}
                    try Task.checkCancellation()
                }
            }
            let lease = try await first(of: begun.stream) { _ in true }
            if isCancelled { running.cancel() } else { try await lease.release() }
            let result = try await withDeadline { await running.result }
            switch result {
            case .failure(let error as DispatchError):
                #expect(!isCancelled && error.code == .leaseLost)
            case .failure(is CancellationError): #expect(isCancelled)
            default: Issue.record("\(result)")
            }
            await node.close()
        }
    }

    @Test func `a lease is lost here before another node holds it, if the sequencer is silent`()
        async throws
    {
        try await withAddress { address in
            var configuration = SequencerConfiguration(bind: address, storage: .memory)
            configuration.adjust = { $0.silenceMax = .seconds(1) }
            let sequencer = try Sequencer.start(configuration)
            let node = try await Node.connect(to: address, settings: NodeSettings())
            let lease = try await node.lease("cashier")
            await sequencer.stop()
            try await withDeadline { await lease.waitUntilOver() }
            #expect(!lease.isHeld)
            await node.close()
        }
    }

    @Test func `while a node has locked a store, another one's actions wait`() async throws {
        try await withWorld { world in
            let (one, other) = (try await world.node(), try await world.node())
            let third = try await world.node()
            let mine = try await one.store(Stock.self)
            let theirs = try await other.store(Stock.self)
            let lock = try await one.lock(mine)
            let events = other.events
            let handle = theirs.dispatch(.double)
            _ = try await first(of: events) { if case .heldUp = $0 { true } else { false } }
            try await mine.dispatch(.add(1)).receipt()
            try await third.actions(of: Stock.self).dispatch(.add(2), under: lock).receipt()
            try await lock.release()
            _ = try await withDeadline { try await handle.receipt() }
            #expect(theirs.value.left == 6)
            let local = Store(Stock())
            let error = await #expect(throws: DispatchError.self) { try await one.lock(local) }
            #expect(error?.code == .rejected)
            await third.close()
            await one.close()
            await other.close()
        }
    }

    @Test func `a lock with an action is kept only if the action changes the store`() async throws {
        try await withWorld { world in
            let (one, other) = (try await world.node(), try await world.node())
            let mine = try await one.store(Stock.self)
            let theirs = try await other.store(Stock.self)
            try await theirs.dispatch(.add(1)).receipt()
            let lock = try await one.lock(dispatching: .double, to: mine)
            #expect(lock.isHeld && mine.value.left == 2)
            let handle = theirs.dispatch(.add(1))
            _ = try await first(of: other.events) { if case .heldUp = $0 { true } else { false } }
            try await mine.dispatch(.double).receipt()
            try await lock.release()
            _ = try await withDeadline { try await handle.receipt() }
            #expect(theirs.value.left == 5)
            for action in [Stock.Action.add(0), .add(-99)] {
                let lock = try await one.lock(dispatching: action, to: mine)
                #expect(!lock.isHeld)
                try await theirs.dispatch(.double).receipt()
            }
            #expect(theirs.value.left == 20)
            await one.close()
            await other.close()
        }
    }

    @Test func `a node that leaves does not say that it holds a lease`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let lease = try await node.lease("cashier")
            #expect(lease.isHeld)
            await node.close()
            #expect(!lease.isHeld)
            try await withDeadline(seconds: 5) { await lease.waitUntilOver() }
        }
    }

    @Test func `a lease is released though the outbox is full`() async throws {
        try await withAddress { address in
            let folder = address.dropFirst("ipc://".count).dropLast("sequencer".count)
            let storage = SequencerConfiguration.Storage.folder(
                folder + "log", SQLiteLogSettings())
            var sequencer = try Sequencer.start(
                SequencerConfiguration(bind: address, storage: storage))
            var settings = NodeSettings()
            settings.outboxBytesMax = 2_000
            let node = try await Node.connect(to: address, settings: settings)
            let store = try await node.store(Stock.self)
            let lease = try await node.lease("cashier")
            await sequencer.stop()
            // Nothing is sent, so the outbox fills.
            while store.dispatch(.add(1)).outcome == nil {}
            let released = Task { try await lease.release() }
            sequencer = try Sequencer.start(SequencerConfiguration(bind: address, storage: storage))
            try await withDeadline { try await released.value }
            let next = try await withDeadline { try await node.lease("cashier") }
            #expect(next.isHeld)
            await node.close()
            await sequencer.stop()
        }
    }

    @Test func `a transaction that requires a lease is taken only while it is held`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(Stock.self)
            let lease = try await node.lease("cashier")
            try await node.transaction { tx in
                tx.require(lease)
                try tx.dispatch(.add(5), to: store)
            }
            try await lease.release()
            let error = await #expect(throws: DispatchError.self) {
                try await node.transaction { tx in
                    tx.require(lease)
                    try tx.dispatch(.add(5), to: store)
                }
            }
            #expect(error?.code == .leaseLost)
            #expect(store.value.left == 5)
            await node.close()
        }
    }
}

/// How many are left.
private struct Stock: Model, Equatable {
    static let name = "lease-stock"
    var left = 0

    struct TooFew: Error {}

    func check(_ action: Action, _ context: ActionContext) throws {
        if case .add(let count) = action, left + count < 0 { throw TooFew() }
    }

    enum Action: Codable, Sendable {
        case add(Int)
        case double
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .add(let count): left += count
        case .double: left *= 2
        }
    }
}
