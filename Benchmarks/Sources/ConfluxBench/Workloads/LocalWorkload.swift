import Conflux
import Dispatch
import Synchronization

/// Local dispatch, without a node, beside the least that could do it: a closure called under a
/// lock, once for each store. And beside VueFlux, where the program was built with that.
struct LocalWorkload {
    let count: Int

    func measure(_ settings: Settings) throws -> [Row] {
        var times: [String: [Double]] = [:]
        var vueFlux: [String: [Double]] = [:]
        for round in 0..<settings.rounds {
            settings.note("local, round \(round + 1)")
            if round % 2 == 1 { Self.add(measureVueFlux(), to: &vueFlux) }
            Self.add(measureOnce(), to: &times)
            if round % 2 == 0 { Self.add(measureVueFlux(), to: &vueFlux) }
        }
        func row(_ name: String, beside partner: String) -> Row {
            Row("local", name, "ns", times[name] ?? [], times[partner] ?? [])
        }
        return ["Int", "Variable"].flatMap { kind in
            let watched = "\(kind), one store, \(Self.watchers)"
            let added = zip(times[watched] ?? [], times["\(kind), one store"] ?? []).map { $0 - $1 }
            return [
                row("\(kind), one store", beside: "lock 1"),
                row("\(kind), one store, two threads", beside: "lock 1, two threads"),
                row(watched, beside: "lock 1"),
                Row("local", "\(kind), what these add", "ns", alone: added),
                row("\(kind), \(Self.onMain)", beside: "lock 1"),
                row("\(kind), global, 1 store", beside: "lock 1"),
                row("\(kind), global, 10 stores", beside: "lock 10"),
            ]
        } + observerRows.map { row($0.name, beside: "lock 1") }
            + [row("closure alone", beside: "lock 1")]
            + vueFlux.keys.sorted().map {
                Row("local", "\($0); partner: VueFlux", "ns", times[$0] ?? [], vueFlux[$0] ?? [])
            }
    }

    private static func add(_ figures: [(String, Double)], to times: inout [String: [Double]]) {
        for (name, nanoseconds) in figures { times[name, default: []].append(nanoseconds) }
    }

    private func measureVueFlux() -> [(String, Double)] {
        #if VUEFLUX
            VueFluxPartner(count: count).measure()
        #else
            []
        #endif
    }

    private func measureOnce() -> [(String, Double)] {
        [
            ("closure alone", closure()), ("lock 1", locks(1)), ("lock 10", locks(10)),
            ("lock 1, two threads", contendedLock()),
            ("Int, one store", instance(NumberState())),
            ("Int, one store, two threads", contended(NumberState())),
            ("Int, one store, \(Self.watchers)", watched(NumberState())),
            ("Int, \(Self.onMain)", instance(NumberState(), on: .mainThread)),
            ("Int, global, 1 store", global(1) { NumberState() }),
            ("Int, global, 10 stores", global(10) { NumberState() }),
            ("Variable, one store", instance(VariableState())),
            ("Variable, one store, two threads", contended(VariableState())),
            ("Variable, one store, \(Self.watchers)", watched(VariableState())),
            ("Variable, \(Self.onMain)", instance(VariableState(), on: .mainThread)),
            ("Variable, global, 1 store", global(1) { VariableState() }),
            ("Variable, global, 10 stores", global(10) { VariableState() }),
        ] + observerRows.map { ($0.name, $0.measure()) }
    }

    /// What a variable costs with observers, and what it costs to be one beside others.
    private var observerRows: [(name: String, measure: () -> Double)] {
        [0, 1, 100].map { others in
            ("set, \(others) observers", { set(others) })
        }
            + [0, 100, 10_000].map { others in
                ("observe and dispose, \(others) others", { observe(others) })
            }
    }

    private func set(_ observers: Int) -> Double {
        let variable = observed(by: observers)
        return nanoseconds(count / max(observers, 1)) { variable.value = 1 }
    }

    private func observe(_ others: Int) -> Double {
        let variable = observed(by: others)
        return nanoseconds(min(count, 50_000)) { variable.signal.observe { _ in }.dispose() }
    }

    private func observed(by count: Int) -> Variable<Int> {
        let variable = opaque(Variable(0))
        for _ in 0..<count { variable.signal.observe { _ in } }
        return variable
    }

    private func closure() -> Double {
        let total = Total()
        let add = opaque { (amount: Int) in total.value += amount }
        return nanoseconds(count) { add(1) }
    }

    private func locks(_ stores: Int) -> Double {
        let totals = (0..<stores).map { _ in LockedTotal() }
        let add = opaque { (total: LockedTotal, amount: Int) in
            total.value.withLock { $0 += amount }
        }
        return nanoseconds(count / stores) { for total in totals { add(total, 1) } }
    }

    private static let onMain = "one store on mainThread, from main"

    private func instance<S: State>(_ state: S, on executor: Executor = .immediate) -> Double
    where S.Action == Amount, S.Mutations: Emptied {
        Scope().run {
            let store = Store<S>(state: state, mutations: S.Mutations(), executor: executor)
            return nanoseconds(count) { store.actions.dispatch(action: .add(1)) }
        }
    }

    private static let watchers = "an interceptor, a recorder, 10,000 names"

    /// Dispatches to one of many registered stores, where an interceptor handles other actions, and another
    /// store is recorded.
    private func watched<S: State>(_ state: S) -> Double
    where S.Action == Amount, S.Mutations: Emptied {
        let scope = Scope()
        let interceptor = Interceptor()
        interceptor.register(Int.self) { _ in .pass }
        scope.use(interceptor)
        return scope.run {
            let store = Store<S>(state: state, mutations: S.Mutations(), executor: .immediate)
            let others = (0..<10_000).map { number in
                let other = Storage(number)
                _ = try? scope.register(other, as: "store \(number)")
                return other
            }
            _ = try? scope.register(store, as: "this one")
            let recorder = Recorder(others[0])
            return withExtendedLifetime((others, recorder)) {
                nanoseconds(count) { store.actions.dispatch(action: .add(1)) }
            }
        }
    }

    /// Two threads dispatch at the same time; the time is that of both, an action.
    private func contended<S: State>(_ state: S) -> Double
    where S.Action == Amount, S.Mutations: Emptied {
        Scope().run {
            let store = Store<S>(state: state, mutations: S.Mutations(), executor: .immediate)
            let actions = SendableActions(actions: store.actions)
            return onTwoThreads(count) { actions.actions.dispatch(action: .add(1)) }
        }
    }

    private func contendedLock() -> Double {
        let total = LockedTotal()
        return onTwoThreads(count) { total.value.withLock { $0 += 1 } }
    }

    private func global<S: State>(_ stores: Int, _ state: () -> S) -> Double
    where S.Action == Amount, S.Mutations: Emptied {
        Scope().run {
            let all = (0..<stores).map { _ in
                Store<S>(state: state(), mutations: S.Mutations(), executor: .immediate)
            }
            return withExtendedLifetime(all) {
                nanoseconds(count / stores) { Store<S>.actions.dispatch(action: .add(1)) }
            }
        }
    }
}

/// Runs a function so many times, and says how long one took.
func nanoseconds(_ count: Int, _ body: () -> Void) -> Double {
    let start = monotonicNanoseconds()
    for _ in 0..<count { body() }
    return Double(monotonicNanoseconds() - start) / Double(count)
}

/// Runs a function half of so many times on each of two threads, and says how long one took.
func onTwoThreads(_ count: Int, _ body: @Sendable () -> Void) -> Double {
    let start = monotonicNanoseconds()
    DispatchQueue.concurrentPerform(iterations: 2) { _ in
        for _ in 0..<count / 2 { body() }
    }
    return Double(monotonicNanoseconds() - start) / Double(count / 2 * 2)
}

/// Actions are used on any thread.
private struct SendableActions<S: State>: @unchecked Sendable {
    let actions: Actions<S>
}

/// Keeps the optimiser from seeing through a closure.
@inline(never)
func opaque<Function>(_ function: Function) -> Function { function }

private final class Total {
    var value = 0
}

private final class LockedTotal: Sendable {
    let value = Mutex(0)
}

enum Amount: Sendable { case add(Int) }

/// Mutations that need nothing to be made.
protocol Emptied: Mutations {
    init()
}

final class NumberState: State {
    typealias Action = Amount
    typealias Mutations = NumberMutations
    fileprivate(set) var number = 0
}

struct NumberMutations: Emptied {
    func commit(action: Amount, state: NumberState) {
        if case .add(let amount) = action { state.number += amount }
    }
}

final class VariableState: State {
    typealias Action = Amount
    typealias Mutations = VariableMutations
    let number = Variable(0)
}

struct VariableMutations: Emptied {
    func commit(action: Amount, state: VariableState) {
        if case .add(let amount) = action { state.number.value += amount }
    }
}
