#if VUEFLUX
    import Dispatch
    import VueFlux
    import VueFluxReactive

    /// The shapes of ``LocalWorkload`` with VueFlux, under the same names.
    struct VueFluxPartner {
        let count: Int

        func measure() -> [(String, Double)] {
            let kinds = [
                ("Int", measure { VueFluxNumberState() }),
                ("Variable", measure { VueFluxVariableState() }),
            ]
            return kinds.flatMap { kind, rows in rows.map { ("\(kind), \($0.0)", $0.1) } }
                + [0, 100, 10_000].map { ("observe and dispose, \($0) others", observe($0)) }
        }

        private func measure<S: State>(_ state: () -> S) -> [(String, Double)]
        where S.Action == VueFluxAmount, S.Mutations: VueFluxEmptied {
            [
                ("one store", instance(state(), on: .immediate, count)),
                ("one store, two threads", contended(state())),
                ("one store on mainThread, from main", instance(state(), on: .mainThread, count)),
                ("global, 1 store", global(1, state)),
                ("global, 10 stores", global(10, state)),
            ]
        }

        private func instance<S: State>(_ state: S, on executor: Executor, _ count: Int) -> Double
        where S.Action == VueFluxAmount, S.Mutations: VueFluxEmptied {
            let store = Store<S>(state: state, mutations: S.Mutations(), executor: executor)
            return nanoseconds(count) { store.actions.dispatch(action: .add(1)) }
        }

        private func contended<S: State>(_ state: S) -> Double
        where S.Action == VueFluxAmount, S.Mutations: VueFluxEmptied {
            let store = Store<S>(state: state, mutations: S.Mutations(), executor: .immediate)
            // Made before the threads share the store, which makes it when it is first asked.
            let actions = store.actions
            nonisolated(unsafe) let dispatch = { actions.dispatch(action: .add(1)) }
            return withExtendedLifetime(store) { onTwoThreads(count) { dispatch() } }
        }

        private func global<S: State>(_ stores: Int, _ state: () -> S) -> Double
        where S.Action == VueFluxAmount, S.Mutations: VueFluxEmptied {
            let all = (0..<stores).map { _ in
                Store<S>(state: state(), mutations: S.Mutations(), executor: .immediate)
            }
            return withExtendedLifetime(all) {
                nanoseconds(count / stores) { Store<S>.actions.dispatch(action: .add(1)) }
            }
        }

        private func observe(_ others: Int) -> Double {
            let variable = opaque(Variable(0))
            for _ in 0..<others { variable.signal.observe { _ in } }
            // It takes as long as there are others.
            return nanoseconds(min(count, 5_000_000 / max(others, 100))) {
                variable.signal.observe { _ in }.dispose()
            }
        }
    }

    private enum VueFluxAmount: Sendable { case add(Int) }

    /// Mutations that need nothing to be made.
    private protocol VueFluxEmptied: Mutations {
        init()
    }

    private final class VueFluxNumberState: State {
        typealias Action = VueFluxAmount
        typealias Mutations = VueFluxNumberMutations
        fileprivate(set) var number = 0
    }

    private struct VueFluxNumberMutations: VueFluxEmptied {
        func commit(action: VueFluxAmount, state: VueFluxNumberState) {
            if case .add(let amount) = action { state.number += amount }
        }
    }

    private final class VueFluxVariableState: State {
        typealias Action = VueFluxAmount
        typealias Mutations = VueFluxVariableMutations
        let number = Variable(0)
    }

    private struct VueFluxVariableMutations: VueFluxEmptied {
        func commit(action: VueFluxAmount, state: VueFluxVariableState) {
            if case .add(let amount) = action { state.number.value += amount }
        }
    }
#endif
