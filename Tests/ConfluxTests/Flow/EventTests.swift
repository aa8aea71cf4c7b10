import Conflux
import Synchronization
import Testing

struct LoggedIn: Event {
    var user: String
}

struct LoggedOut: Event {}

struct Account: Model, EventHandling, Equatable {
    static let name = "account"
    static let events = EventHandlers<Action>()
        .on(LoggedIn.self) { $0.user.isEmpty ? nil : .enter($0.user) }
        .on(LoggedOut.self) { _ in .leave }
    var user: String?

    enum Action: Codable, Sendable { case enter(String), leave }

    func check(_ action: Action, _ context: ActionContext) throws {
        if case .leave = action, user == nil { throw NobodyIsIn() }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .enter(let name): user = name
        case .leave: user = nil
        }
    }
}

struct NobodyIsIn: Error, Equatable {}

final class GreetingState: State, EventHandling {
    typealias Action = String
    typealias Mutations = GreetingMutations
    static let events = EventHandlers<String>().on(LoggedIn.self) { "Hello, \($0.user)" }
    fileprivate let lines = Mutex<[String]>([])
}

struct GreetingMutations: Mutations {
    func commit(action: String, state: GreetingState) {
        state.lines.withLock { $0.append(action) }
    }
}

extension Computed where State == GreetingState {
    var lines: [String] { state.lines.withLock { $0 } }
}

@Suite(.timeLimit(.minutes(5)))
struct EventTests {
    let scope = Scope()

    private func greeting(on executor: Executor = .immediate) -> Store<GreetingState> {
        scope.run { Store(state: .init(), mutations: .init(), executor: executor) }
    }

    @Test func `stores of different states each handle an event in their own way`() async throws {
        let (account, other) = scope.run { (ModelStore<Account>(), ModelStore<Account>()) }
        let greeting = greeting()
        let elsewhere = Scope().run { ModelStore<Account>() }
        try await scope.send(LoggedIn(user: "foo")).receipt()
        #expect(account.user == "foo" && other.user == "foo")
        #expect(greeting.computed.lines == ["Hello, foo"])
        #expect(elsewhere.user == nil)
    }

    @Test func `a state may ignore an event`() async throws {
        let account = scope.run { ModelStore<Account>() }
        let greeting = greeting()
        try await scope.send(LoggedIn(user: "")).receipt()
        #expect(account.user == nil)
        #expect(greeting.computed.lines == ["Hello, "])
    }

    @Test func `an event without a handler is reported`() async {
        let error = await #expect(throws: DispatchError.self) {
            try await scope.send(LoggedOut()).receipt()
        }
        #expect(error?.code == .noStore)
        #expect(error?.message.contains("LoggedOut") == true)
    }

    @Test func `an event is refused only if every store refuses it`() async throws {
        let account = scope.run { ModelStore<Account>() }
        let error = await #expect(throws: DispatchError.self) {
            try await scope.send(LoggedOut()).receipt()
        }
        #expect(error?.reason as? NobodyIsIn == NobodyIsIn())
        let other = scope.run { ModelStore(Account(user: "foo")) }
        try await scope.send(LoggedOut()).receipt()
        #expect(account.user == nil && other.user == nil)
    }

    @Test func `middleware sees an event as an action of each state`() async throws {
        let account = scope.run { ModelStore<Account>() }
        let greeting = greeting()
        let interceptor = Interceptor()
        interceptor.register(Account.Action.self) { _ in .stop }
        interceptor.register(String.self) { .replace($0 + "!") }
        scope.use(interceptor)
        try await scope.send(LoggedIn(user: "foo")).receipt()
        #expect(account.user == nil)
        #expect(greeting.computed.lines == ["Hello, foo!"])
    }

    @Test func `events of many threads reach all stores in one order`() async throws {
        let first = greeting(on: .queue(.global()))
        let second = greeting(on: .queue(.global()))
        let account = scope.run { ModelStore<Account>(executor: .queue(.global())) }
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
                group.addTask {
                    for number in 0..<50 {
                        _ = try? await scope.send(LoggedIn(user: "\(thread)-\(number)")).receipt()
                    }
                }
            }
        }
        #expect(first.computed.lines.count == 400)
        #expect(first.computed.lines == second.computed.lines)
        #expect(first.computed.lines.last == "Hello, \(account.user ?? "")")
    }

    @Test func `a lock pauses an event`() {
        let greeting = greeting()
        let lock = scope.lock()
        scope.send(LoggedIn(user: "foo"))
        #expect(greeting.computed.lines.isEmpty)
        lock.release()
        #expect(greeting.computed.lines == ["Hello, foo"])
    }

    @Test
    func `an event stopped everywhere is reported, and one without stores is not shown`()
        async
    {
        var account: ModelStore<Account>? = scope.run { ModelStore<Account>() }
        let bystander = Bystander()
        scope.use(bystander)
        let interceptor = Interceptor()
        interceptor.register(Account.Action.self) { _ in .stop }
        let registration = scope.use(interceptor)
        let stopped = await #expect(throws: DispatchError.self) {
            try await scope.send(LoggedIn(user: "foo")).receipt()
        }
        #expect(stopped?.code == .intercepted)
        registration.dispose()
        withExtendedLifetime(account) {}
        account = nil
        let count = bystander.lines.count
        let nobody = await #expect(throws: DispatchError.self) {
            try await scope.send(LoggedIn(user: "foo")).receipt()
        }
        #expect(nobody?.code == .noStore)
        #expect(bystander.lines.count == count)
    }
}
