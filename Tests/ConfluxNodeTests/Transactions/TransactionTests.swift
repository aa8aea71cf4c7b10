import Conflux
import ConfluxNode
import ConfluxSequencer
import Dispatch
import Synchronization
import Testing

/// Transactions over several stores (P11).
struct TransactionTests {
    /// An account, as half of the bookings below have it.
    struct Account: Model {
        static let name = "account"
        var balance = 100
        var bookings = 0
        enum Action: Codable, Sendable { case add(Int) }

        struct Overdrawn: Error {}

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .add(let amount) = action, balance + amount < 0 { throw Overdrawn() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            guard case .add(let amount) = action else { return }
            balance += amount
            bookings += 1
        }
    }

    struct Rejected: Error {}

    /// Two nodes, each with two accounts.
    private func withAccounts(
        executor: Executor = .immediate,
        _ body:
            @escaping ([(node: Node, from: ModelStore<Account>, to: ModelStore<Account>)])
            async throws -> Void
    ) async throws {
        try await withWorld { world in
            var banks: [(node: Node, from: ModelStore<Account>, to: ModelStore<Account>)] = []
            for name in ["alpha", "beta"] {
                let node = try await world.node(name)
                let from = try await node.store(Account.self, named: "from")
                let to = try await node.store(Account.self, named: "to", executor: executor)
                banks.append((node, from, to))
            }
            try await body(banks)
            for bank in banks { await bank.node.close() }
        }
    }

    @Test func `a transaction changes two stores in every process, at one place in the log`()
        async throws
    {
        try await withAccounts { banks in
            let (node, from, to) = banks[0]
            let done = try await node.transaction { transaction in
                try transaction.dispatch(.add(-30), to: from)
                // It sees what it does itself.
                let rest = try transaction.read(from).balance
                try transaction.dispatch(.add(rest / 7), to: to)
                return rest
            }
            #expect(done.value == 70)
            #expect(from.balance == 70 && to.balance == 110)
            let receipt = try #require(done.receipt)
            #expect(from.version.sequence == receipt.sequence)
            try await banks[1].node.wait(for: receipt)
            #expect(banks[1].from.balance == 70 && banks[1].to.balance == 110)
        }
    }

    @Test func `nothing is sent if the function throws, a model refuses, or it only reads`()
        async throws
    {
        try await withAccounts { banks in
            let (node, from, to) = banks[0]
            await #expect(throws: Rejected.self) {
                try await node.transaction { transaction in
                    try transaction.dispatch(.add(-30), to: from)
                    throw Rejected()
                }
            }
            let error = await #expect(throws: DispatchError.self) {
                try await node.transaction { transaction in
                    try transaction.dispatch(.add(1), to: to)
                    try transaction.dispatch(.add(-101), to: from)
                }
            }
            #expect(error?.code == .refused && error?.reason is Account.Overdrawn)
            #expect(error?.receipt == nil)
            let read = try await node.transaction {
                try $0.read(from).balance + $0.read(to).balance
            }
            #expect(read.value == 200 && read.receipt == nil)
            #expect(from.bookings == 0 && to.bookings == 0)
        }
    }

    @Test func `transactions of two processes on the same stores all happen, one after the other`()
        async throws
    {
        try await withAccounts { banks in
            let each = 25
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (node, from, to) in banks {
                    group.addTask {
                        for _ in 1...each {
                            try await node.transaction(attempts: 1_000, patience: .seconds(60)) {
                                // A booking that was based on an old balance would lose another one.
                                let balance = try $0.read(from).balance
                                try $0.dispatch(.add(-1), to: from)
                                try $0.dispatch(.add(101 - balance), to: to)
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let sum = (1...2 * each).reduce(0, +)
            for (node, from, to) in banks {
                try await node.barrier()
                #expect(from.balance == 100 - 2 * each && to.balance == 100 + sum)
            }
        }
    }

    @Test func `what was only read must not have changed either`() async throws {
        try await withAccounts { banks in
            let (node, from, to) = banks[0]
            let other = banks[1]
            let runs = Mutex(0)
            let done = try await node.transaction { transaction in
                let balance = try transaction.read(from).balance
                try transaction.dispatch(.add(balance), to: to)
                let isFirst = runs.withLock { runs in
                    runs += 1
                    return runs == 1
                }
                // Ordered before this transaction, whatever this node has applied by then.
                if isFirst {
                    let booked = DispatchSemaphore(value: 0)
                    other.from.core.dispatchTracked(.add(5)).whenEnded { _ in booked.signal() }
                    booked.wait()
                }
                return balance
            }
            #expect(done.value == 105)
            #expect(runs.withLock { $0 } == 2)
            #expect(to.balance == 205)
            let error = await #expect(throws: DispatchError.self) {
                try await node.transaction(attempts: 1) { transaction in
                    try transaction.dispatch(.add(transaction.read(from).balance), to: to)
                    let booked = DispatchSemaphore(value: 0)
                    other.from.core.dispatchTracked(.add(5)).whenEnded { _ in booked.signal() }
                    booked.wait()
                }
            }
            #expect(error?.code == .conflict)
        }
    }

    @Test(arguments: [true, false])
    func `observers see all of a transaction or nothing, and so does a reader of both stores`(
        isLate: Bool
    ) async throws {
        let queue = Executor.queue(DispatchQueue(label: "late"))
        try await withAccounts(executor: isLate ? queue : .immediate) { banks in
            let (node, from, to) = banks[0]
            let (other, theirFrom, theirTo) = banks[1]
            let torn = Atomic(0)
            let looks = Atomic(0)
            for (store, counterpart) in [(theirFrom, theirTo), (theirTo, theirFrom)] {
                store.observe(\.balance) { account in
                    looks.add(1, ordering: .relaxed)
                    if account.balance + counterpart.balance < 200 {
                        torn.add(1, ordering: .relaxed)
                    }
                }
            }
            let reading = Task {
                var sums: Set<Int> = []
                for _ in 1...50 {
                    sums.insert(
                        try await other.read(theirFrom, theirTo) { $0.balance + $1.balance })
                }
                return sums
            }
            var last: Receipt?
            for _ in 1...50 {
                last = try await node.transaction { transaction in
                    try transaction.dispatch(.add(-1), to: from)
                    try transaction.dispatch(.add(1), to: to)
                }.receipt
            }
            try await other.wait(for: try #require(last))
            #expect(try await reading.value == [200])
            #expect(looks.load(ordering: .relaxed) >= 100)
            #expect(torn.load(ordering: .relaxed) == 0)
        }
    }

    @Test func `a transaction whose caller was told that nothing was sent is never sent`()
        async throws
    {
        try await withAccounts { banks in
            let (node, from, to) = banks[0]
            let (begun, released) = (
                AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0)
            )
            // An observer that keeps the node from applying.
            to.observe(\.balance) { account in
                guard account.bookings > 0 else { return }
                begun.continuation.finish()
                released.wait()
            }
            let booking = to.dispatch(.add(1))
            for await _ in begun.stream {}
            let error = await #expect(throws: NodeError.self) {
                try await node.transaction(patience: .milliseconds(50)) {
                    try $0.dispatch(.add(1), to: from)
                }
            }
            #expect(error?.code == .timedOut)
            released.signal()
            try await booking.receipt()
            try await node.barrier()
            #expect(from.bookings == 0)
        }
    }

    @Test func `a transaction whose function takes too long is never sent`() async throws {
        try await withAccounts { banks in
            let (node, from, _) = banks[0]
            let error = await #expect(throws: NodeError.self) {
                try await node.transaction(patience: .milliseconds(1)) { transaction in
                    try transaction.dispatch(.add(1), to: from)
                    let begun = ContinuousClock.now
                    while ContinuousClock.now - begun < .milliseconds(5) {}
                }
            }
            #expect(error?.code == .timedOut)
            try await node.barrier()
            #expect(from.bookings == 0)
        }
    }

    @Test func `a frozen store may be read by a transaction, and not changed`() async throws {
        try await withAccounts { banks in
            let (node, from, to) = banks[0]
            try await node.freeze(from)
            try await node.transaction { transaction in
                try transaction.dispatch(.add(transaction.read(from).balance), to: to)
            }
            #expect(to.balance == 200)
            let error = await #expect(throws: DispatchError.self) {
                try await node.transaction { try $0.dispatch(.add(1), to: from) }
            }
            #expect(error?.code == .rejected)
        }
    }

    @Test func `stores that meet for an event can meet for a chain at the same time`() async throws
    {
        try await withWorld { world in
            let scope = Scope()
            let node = try await world.node("alpha", scope: scope)
            let (bell, light) = scope.run { (ModelStore<Bell>(), ModelStore<Light>()) }
            try await node.bridge(ModelState<Bell>.self)
            try await node.bridge(ModelState<Light>.self)
            let each = 300
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for _ in 1...each { try await scope.send(Rang()).receipt() }
                }
                group.addTask {
                    for _ in 1...each {
                        try await scope.chain().dispatch(.ring, to: bell).dispatch(
                            .flash, to: light
                        )
                        .react().receipt()
                    }
                }
                try await group.waitForAll()
            }
            #expect(bell.count == 2 * each && light.count == 2 * each)
            await node.close()
        }
    }

    struct Rang: Event {}

    struct Bell: Model, EventHandling {
        static let name = "bell"
        static let events = EventHandlers<Action>().on(Rang.self) { _ in .ring }
        var count = 0
        enum Action: Codable, Sendable { case ring }
        mutating func apply(_ action: Action, _ context: ActionContext) { count += 1 }
    }

    struct Light: Model, EventHandling {
        static let name = "light"
        static let events = EventHandlers<Action>().on(Rang.self) { _ in .flash }
        var count = 0
        enum Action: Codable, Sendable { case flash }
        mutating func apply(_ action: Action, _ context: ActionContext) { count += 1 }
    }

    @Test func `a store that the node does not host, and too many stores, fail by name`()
        async throws
    {
        try await withAccounts { banks in
            let stranger = banks[1].from
            let error = await #expect(throws: NodeError.self) {
                try await banks[0].node.transaction { try $0.read(stranger).balance }
            }
            #expect(error?.code == .notHosted)
            let node = banks[0].node
            var stores: [ModelStore<Account>] = []
            for index in 0...256 {
                stores.append(try await node.store(Account.self, named: "\(index)"))
            }
            let many = stores
            let large = await #expect(throws: DispatchError.self) {
                try await node.transaction { transaction in
                    for store in many { try transaction.dispatch(.add(1), to: store) }
                }
            }
            #expect(large?.code == .invalidAction)
            #expect(many.allSatisfy { $0.bookings == 0 })
        }
    }

    @Test func `a transaction that nobody orders in time is withdrawn, or undecided`() async throws
    {
        try await withAddress { address in
            let sequencer = try Sequencer.start(
                SequencerConfiguration(bind: address, storage: .memory))
            var settings = NodeSettings()
            settings.closeTimeout = .zero
            let node = try await Node.connect(to: address, settings: settings, scope: Scope())
            let store = try await node.store(Account.self)
            await sequencer.stop()
            let error = await #expect(throws: DispatchError.self) {
                try await node.transaction(attempts: 1, patience: .milliseconds(100)) {
                    try $0.dispatch(.add(1), to: store)
                }
            }
            #expect(error?.code == .withdrawn || error?.code == .timedOut)
            await node.close()
        }
    }
}
