import Conflux
import ConfluxNode
import ConfluxLog
import ConfluxSequencer
import ConfluxZeroMQ
import Foundation
import Synchronization
import Testing

/// Events whose sender does not know who handles them.
struct SharedEventTests {
    struct LoggedIn: Event {
        var user: String
    }

    struct Unheard: Event {}

    /// An event that stays in its process.
    struct Private: Event {
        static let isShared = false
    }

    /// The same event in a program that has another form of it.
    enum Other {
        struct LoggedIn: Event {
            var number: Int
        }
    }

    struct Account: Model, Equatable, EventHandling {
        static let name = "account"
        static let events = EventHandlers<Action>().on(LoggedIn.self) { .enter($0.user) }
        var users: [String] = []
        enum Action: Codable, Sendable { case enter(String) }

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .enter(let user) = action, ["boss", "root"].contains(user) { throw Refusal() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if case .enter(let user) = action { users.append(user) }
        }
    }

    struct Greeting: Model, Equatable, EventHandling {
        static let name = "greeting"
        static let events = EventHandlers<Action>()
            .on(LoggedIn.self) { ["guest", "root"].contains($0.user) ? nil : .greet($0.user) }
            .on(Private.self) { _ in .greet("private") }
        var users: [String] = []
        var numbers: [SequenceNumber] = []
        enum Action: Codable, Sendable { case greet(String) }

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .greet("") = action { throw Refusal() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            guard case .greet(let user) = action else { return }
            users.append(user)
            numbers.append(context.sequence)
        }
    }

    private func greetings(
        _ world: World, _ name: String, _ count: Int = 1
    ) async throws -> (Node, [ModelStore<Greeting>]) {
        let node = try await world.node(name)
        var stores: [ModelStore<Greeting>] = []
        for number in 0..<count {
            stores.append(
                try await node.store(Greeting.self, named: number == 0 ? "shared" : "\(number)"))
        }
        return (node, stores)
    }

    @Test func `an event reaches states that its sender lacks, and late joiners`() async throws {
        let scope = Scope()
        try await withWorld { world in
            let sender = try await world.node("sender", scope: scope)
            let (host, stores) = try await greetings(world, "host", 2)
            let handle = scope.send(LoggedIn(user: "ann"))
            let receipt = try await handle.receipt()
            try await host.wait(for: receipt)
            #expect(stores.map(\.users) == [["ann"], ["ann"]])
            #expect(stores.map(\.numbers) == [[receipt.sequence], [receipt.sequence]])
            try await handle.effect()
            // A state passes over what does not concern it. Its version rises nevertheless.
            let guest = try await scope.send(LoggedIn(user: "guest")).receipt()
            try await host.wait(for: guest)
            #expect(stores[0].users == ["ann"])
            try await host.transaction { tx in
                if try tx.read(stores[0]).users == ["ann"] {
                    try tx.dispatch(.greet("bob"), to: stores[0])
                }
            }
            #expect(stores[0].users == ["ann", "bob"])
            let (late, theirs) = try await greetings(world, "late")
            #expect(theirs[0].users == ["ann", "bob"])
            for node in [sender, host, late] { await node.close() }
        }
    }

    @Test func `an event is sent under locks, which stay if it changes something`() async throws {
        try await withWorld { world in
            let (host, greetings) = try await greetings(world, "host", 2)
            let account = try await host.store(Account.self)
            let (other, theirs) = try await self.greetings(world, "other")
            let locks = try await host.lock(
                sending: LoggedIn(user: "ann"), over: greetings[0], account)
            #expect(locks.map(\.name) == ["account/shared", "greeting/shared"])
            #expect(account.users == ["ann"] && greetings.map(\.users) == [["ann"], ["ann"]])
            let handle = theirs[0].dispatch(.greet("bob"))
            _ = try await first(of: other.events) { if case .heldUp = $0 { true } else { false } }
            try await greetings[0].dispatch(.greet("carl"), under: locks[1]).receipt()
            for lock in locks { try await lock.release() }
            _ = try await withDeadline { try await handle.receipt() }
            #expect(theirs[0].users == ["ann", "carl", "bob"])
            // It changes this store of the two, or none, or nobody handles it.
            let some = try await host.lock(
                sending: LoggedIn(user: "guest"), over: account, greetings[0])
            #expect(some.count == 2)
            for lock in some { try await lock.release() }
            let none = try await host.lock(sending: LoggedIn(user: "guest"), over: greetings[0])
            #expect(none.isEmpty)
            let error = await #expect(throws: DispatchError.self) {
                try await host.lock(sending: Unheard(), over: greetings[0], account)
            }
            #expect(error?.code == .rejected)
            _ = try await withDeadline { try await theirs[0].dispatch(.greet("dora")).receipt() }
            for node in [host, other] { await node.close() }
        }
    }

    @Test func `an event is not taken once one of its locks is lost`() async throws {
        try await withWorld { world in
            let (host, greetings) = try await greetings(world, "host")
            let account = try await host.store(Account.self)
            let other = try await world.node("other")
            let theirs = try await other.store(Greeting.self)
            let free = try await other.store(Account.self, named: "free")
            let second = try await other.lock(theirs)
            let sending = Task {
                try await host.lock(sending: LoggedIn(user: "ann"), over: account, greetings[0])
            }
            // The host has its first lock once it claims the second one. The claims have the numbers that no action has.
            var (last, claims) = (second.token, [SequenceNumber]())
            while claims.count < 2 {
                let receipt = try await withDeadline {
                    try await free.dispatch(.enter("")).receipt()
                }
                while last.next < receipt.sequence {
                    last = last.next
                    claims.append(last)
                }
                last = receipt.sequence
            }
            _ = try await other.core.release(claims[0], within: .seconds(5))
            try await second.release()
            let error = await #expect(throws: DispatchError.self) {
                try await withDeadline { try await sending.value }
            }
            #expect(error?.code == .leaseLost)
            try await host.barrier()
            #expect(account.users.isEmpty && greetings[0].users.isEmpty)
            for node in [host, other] { await node.close() }
        }
    }

    @Test func `each state takes an event once, all of them at one number`() async throws {
        let (scope, both) = (Scope(), Scope())
        try await withWorld { world in
            let sender = try await world.node("sender", scope: scope)
            let account = try await sender.store(Account.self)
            let (host, stores) = try await greetings(world, "host")
            let node = try await world.node("both", scope: both)
            let (theirs, greeting) = (
                try await node.store(Account.self), try await node.store(Greeting.self)
            )
            let torn = Atomic(0)
            theirs.observe { if $0.users != greeting.users { torn.add(1, ordering: .relaxed) } }
            greeting.observe { if $0.users != theirs.users { torn.add(1, ordering: .relaxed) } }
            for number in 1...3 {
                let first = try await scope.send(LoggedIn(user: "a\(number)")).receipt()
                // It is one entry, also for the sender's own state.
                try await host.barrier()
                #expect(stores[0].numbers.last == first.sequence)
                _ = try await both.send(LoggedIn(user: "b\(number)")).receipt()
            }
            for node in [sender, host, node] { try await node.barrier() }
            let users = ["a1", "b1", "a2", "b2", "a3", "b3"]
            #expect([account.users, theirs.users, stores[0].users] == [users, users, users])
            #expect(torn.load(ordering: .relaxed) == 0)
            #expect(greeting.users == users && greeting.numbers == stores[0].numbers)
            for node in [sender, host, node] { await node.close() }
        }
    }

    @Test func `a store of one process handles an event that others get, too`() async throws {
        let scope = Scope()
        try await withWorld { world in
            let sender = try await world.node("sender", scope: scope)
            let local = scope.run { ModelStore(Account()) }
            let handle = scope.send(LoggedIn(user: "ann"))
            #expect(local.users == ["ann"])
            // No state in the log handles it.
            try await handle.receipt()
            let (host, stores) = try await greetings(world, "host")
            try await scope.send(LoggedIn(user: "bob")).receipt()
            try await wait(for: stores[0]) { $0.users == ["bob"] }
            #expect(local.users == ["ann", "bob"])
            for node in [sender, host] { await node.close() }
        }
    }

    @Test func `what nobody handles is rejected, and what is not shared stays`() async throws {
        let scope = Scope()
        try await withWorld { world in
            let sender = try await world.node("sender", scope: scope)
            let (host, stores) = try await greetings(world, "host")
            let unheard = await #expect(throws: DispatchError.self) {
                try await scope.send(Unheard()).receipt()
            }
            #expect(unheard?.code == .rejected)
            #expect(unheard?.message.contains("handles the event unheard") == true)
            let stays = await #expect(throws: DispatchError.self) {
                try await scope.send(Private()).receipt()
            }
            #expect(stays?.code == .noStore)
            await sender.close()
            let closed = await #expect(throws: DispatchError.self) {
                try await scope.send(LoggedIn(user: "ann")).receipt()
            }
            #expect(closed?.code == .noStore)
            try await host.barrier()
            #expect(stores[0].users == [])
            await host.close()
        }
    }

    @Test func `every replica refuses an event that it can't read, or that its check refuses`()
        async throws
    {
        let scope = Scope()
        try await withWorld { world in
            let sender = try await world.node("sender", scope: scope)
            let (host, stores) = try await greetings(world, "host")
            for handle in [scope.send(Other.LoggedIn(number: 1)), scope.send(LoggedIn(user: ""))] {
                try await handle.receipt()
                let error = await #expect(throws: DispatchError.self) { try await handle.effect() }
                #expect(error?.code == .refused)
            }
            #expect(stores[0].users == [])
            for node in [sender, host] { await node.close() }
        }
    }

    @Test func `a frozen store takes no event, and the others do`() async throws {
        let scope = Scope()
        try await withWorld { world in
            let sender = try await world.node("sender", scope: scope)
            let (host, stores) = try await greetings(world, "host", 2)
            try await host.freeze(stores[0])
            try await scope.send(LoggedIn(user: "ann")).receipt()
            try await host.thaw(stores[0])
            try await host.barrier()
            #expect(stores.map(\.users) == [[], ["ann"]])
            for node in [sender, host] { await node.close() }
        }
    }

    @Test func `middleware that stops an event for a state stops it everywhere`() async throws {
        struct Stop: Middleware {
            func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
                S.self is ModelState<Account>.Type ? .stop : .pass
            }
        }
        let scope = Scope()
        try await withWorld { world in
            let sender = try await world.node("sender", scope: scope)
            let account = try await sender.store(Account.self)
            let (host, stores) = try await greetings(world, "host")
            let theirs = try await host.store(Account.self)
            let registration = scope.use(Stop())
            try await scope.send(LoggedIn(user: "ann")).receipt()
            try await host.barrier()
            #expect(stores[0].users == ["ann"] && account.users == [] && theirs.users == [])
            registration.dispose()
            for node in [sender, host] { await node.close() }
        }
    }

    @Test(arguments: [false, true])
    func `a state that passes an event over, or whose action is stopped, hides no refusal`(
        isStopped: Bool
    ) async throws {
        let scope = Scope()
        try await withWorld { world in
            let sender = try await world.node("sender", scope: scope)
            let account = try await sender.store(Account.self)
            let greeting = try await sender.store(Greeting.self)
            try await scope.send(LoggedIn(user: "ann")).receipt()
            let interceptor = Interceptor()
            if isStopped { interceptor.register(Greeting.Action.self) { _ in .stop } }
            scope.use(interceptor)
            let error = await #expect(throws: DispatchError.self) {
                try await scope.send(LoggedIn(user: isStopped ? "boss" : "root")).receipt()
            }
            #expect(error?.code == .refused)
            #expect(account.users == ["ann"] && greeting.users == ["ann"])
            await sender.close()
        }
    }

    @Test func `a store that nobody hosts gets the event later, and after a restart`() async throws
    {
        let scope = Scope()
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(Identifier.random())")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await withAddress { address in
            let start = {
                try Sequencer.start(
                    SequencerConfiguration(
                        bind: address,
                        storage: .folder(folder.path, SQLiteLogSettings(durability: .os))))
            }
            let connect = { (name: String, scope: Scope) in
                try await Node.connect(
                    to: address, settings: NodeSettings(name: Name(name)), scope: scope)
            }
            var sequencer = try start()
            var host = try await connect("host", Scope())
            _ = try await host.store(Greeting.self)
            await host.close()
            await sequencer.stop()
            sequencer = try start()
            let sender = try await connect("sender", scope)
            try await scope.send(LoggedIn(user: "ann")).receipt()
            await sequencer.stop()
            sequencer = try start()
            host = try await connect("again", Scope())
            let greeting = try await host.store(Greeting.self)
            #expect(greeting.users == ["ann"])
            try await scope.send(LoggedIn(user: "bob")).receipt()
            try await host.barrier()
            #expect(greeting.users == ["ann", "bob"])
            for node in [sender, host] { await node.close() }
            await sequencer.stop()
        }
    }

    @Test func `a key needs the right to dispatch to every state that handles an event`()
        async throws
    {
        let (own, key) = (CurveKeyPair.random(), CurveKeyPair.random())
        let (more, other) = (CurveKeyPair.random(), CurveKeyPair.random())
        let scope = Scope()
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        configuration.access = .keys(
            own,
            authorized: try AuthorizedKeys(
                """
                limited \(key) dispatch=account/* host=account/*
                both \(more) dispatch=account/*,greeting/*
                all \(other) all

                """))
        let sequencer = try Sequencer.start(configuration)
        let connect = { (key: CurveKeyPair, scope: Scope) in
            var settings = NodeSettings()
            settings.keys = NodeKeys(own: key, sequencer: own.publicKey)
            return try await Node.connect(
                to: sequencer.address, settings: settings, scope: scope)
        }
        let sender = try await connect(key, scope)
        let account = try await sender.store(Account.self)
        try await scope.send(LoggedIn(user: "ann")).receipt()
        let host = try await connect(other, Scope())
        let greeting = try await host.store(Greeting.self)
        let error = await #expect(throws: DispatchError.self) {
            try await scope.send(LoggedIn(user: "bob")).receipt()
        }
        #expect(error?.code == .rejected)
        #expect(
            error?.message.contains(
                "greeting handles the event loggedin, and the key limited may not") == true)
        #expect(account.users == ["ann"] && greeting.users == [])
        let wide = Scope()
        let allowed = try await connect(more, wide)
        let receipt = try await wide.send(LoggedIn(user: "cid")).effect()
        try await host.wait(for: receipt)
        #expect(greeting.users == ["cid"])
        await allowed.close()
        for node in [sender, host] { await node.close() }
        await sequencer.stop()
    }
}
