import Conflux
import Synchronization

/// Local dispatch, without a node, beside the least that could do it: a closure called under a
/// lock, once for each store.
struct LocalWorkload {
    let count: Int

    func measure(_ settings: Settings) throws -> [Row] {
        var times: [String: [Double]] = [:]
        for round in 0..<settings.rounds {
            settings.note("local, round \(round + 1)")
            for (name, nanoseconds) in measureOnce() {
                times[name, default: []].append(nanoseconds)
            }
        }
        func row(_ name: String, beside partner: String) -> Row {
            Row("local", name, "ns", times[name] ?? [], times[partner] ?? [])
        }
        return ["Int", "Variable"].flatMap { kind in
            [
                row("\(kind), one store", beside: "lock 1"),
                row("\(kind), global, 1 store", beside: "lock 1"),
                row("\(kind), global, 10 stores", beside: "lock 10"),
            ]
        } + [row("closure alone", beside: "lock 1")]
    }

    private func measureOnce() -> [(String, Double)] {
        [
            ("closure alone", closure()), ("lock 1", locks(1)), ("lock 10", locks(10)),
            ("Int, one store", instance(NumberState())),
            ("Int, global, 1 store", global(1) { NumberState() }),
            ("Int, global, 10 stores", global(10) { NumberState() }),
            ("Variable, one store", instance(VariableState())),
            ("Variable, global, 1 store", global(1) { VariableState() }),
            ("Variable, global, 10 stores", global(10) { VariableState() }),
        ]
    }

    private func nanoseconds(_ count: Int, _ body: () -> Void) -> Double {
        let start = monotonicNanoseconds()
        for _ in 0..<count { body() }
        return Double(monotonicNanoseconds() - start) / Double(count)
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

    private func instance<S: State>(_ state: S) -> Double
    where S.Action == Amount, S.Mutations: Emptied {
        Scope().run {
            let store = Store<S>(state: state, mutations: S.Mutations(), executor: .immediate)
            return nanoseconds(count) { store.actions.dispatch(action: .add(1)) }
        }
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
