import Conflux
import Synchronization
import Testing

/// A route that keeps the actions that it gets.
private final class Road: ActionRoute {
    typealias S = TallyState

    let submitted = Mutex<[Int]>([])
    let block = OutcomeBlock()

    func conditional(on version: StoreVersion) -> any ActionRoute<S> { self }

    func submit(_ action: Int, mayWait: Bool) -> DispatchHandle {
        submitted.withLock { $0.append(action) }
        return DispatchHandle(block: block, index: block.reserve())
    }

    var numbers: [Int] { submitted.withLock { $0 } }
}

@Suite(.timeLimit(.minutes(5)))
struct StoreDeliveryTests {
    private func run(_ numbers: ClosedRange<UInt64>) -> [OrderedAction<TallyState>] {
        numbers.map { number in
            OrderedAction(
                action: Int(number), context: ActionContext(sequence: SequenceNumber(number)))
        }
    }

    @Test func `a run is committed before an uncontended delivery returns`() {
        let (core, state) = tallyCore()
        let report = Late<RunReport>()
        core.deliver(run(5...7)) { report.value = $0 }
        #expect(state.told == [5, 6, 7])
        #expect(report.value?.completed == 3)
        #expect(report.value?.isClosed == false)
        #expect(core.position == SequenceNumber(7))
    }

    @Test func `entries that the store already has are skipped`() {
        let (core, state) = tallyCore()
        core.deliver(run(1...3)) { _ in }
        core.deliver(run(2...5)) { _ in }
        #expect(state.told == [1, 2, 3, 4, 5])
    }

    @Test func `the position moves after the run is committed, and past entries of other stores`() {
        let held = HeldExecutor()
        let late = Late<StoreCore<TallyState>>()
        let seen = Mutex<[SequenceNumber?]>([])
        let (core, state) = tallyCore(on: held.executor) { _ in
            seen.withLock { $0.append(late.value?.position) }
        }
        late.value = core
        core.deliver(run(1...3), through: StoreVersion(sequence: SequenceNumber(9))) { _ in }
        #expect(core.position == .zero)
        held.runAll()
        #expect(state.told == [1, 2, 3])
        #expect(seen.withLock { $0 } == [.zero, .zero, .zero])
        #expect(core.position == SequenceNumber(9))
        late.value = nil
    }

    @Test func `refusals are reported by their place in the run`() {
        let store = ModelStore(Stock(left: 1))
        let report = Late<RunReport>()
        let amounts = [1, 1, 2]
        let run = amounts.enumerated().map { index, amount in
            OrderedAction<ModelState<Stock>>(
                action: .take(amount: amount),
                context: ActionContext(sequence: SequenceNumber(UInt64(index + 1))))
        }
        store.core.deliver(run) { report.value = $0 }
        #expect(report.value?.refusals.map(\.index) == [1, 2])
        #expect(report.value?.refusals.first?.error is OutOfStock)
        #expect(store.core.position == SequenceNumber(3))
    }

    @Test func `a released store reports that it is closed`() {
        let held = HeldExecutor()
        let (core, state) = tallyCore(on: held.executor)
        let (queued, late) = (Late<RunReport>(), Late<RunReport>())
        let sight = Late<Bool>()
        core.deliver(run(1...3)) { queued.value = $0 }
        core.inspect { state, _ in sight.value = state != nil }
        core.close()
        core.deliver(run(4...5)) { late.value = $0 }
        held.runAll()
        #expect(queued.value?.isClosed == true && queued.value?.completed == 0)
        #expect(late.value?.isClosed == true)
        #expect(sight.value == false)
        #expect(state.told.isEmpty)
    }

    @Test func `inspecting sees the state between the runs it was asked between`() {
        let held = HeldExecutor()
        let (core, _) = tallyCore(on: held.executor)
        let seen = Late<[UInt64]>()
        core.deliver(run(1...2)) { _ in }
        core.inspect { state, position in
            seen.value = (state?.told ?? []).map(UInt64.init) + [position.rawValue]
        }
        core.deliver(run(3...4)) { _ in }
        held.runAll()
        #expect(seen.value == [1, 2, 2])
    }

    @Test func `a restored store continues from its snapshot's number`() {
        let store = ModelStore<Stock>()
        let isDone = Late<Bool>()
        store.core.restore(Stock(left: 7), at: SequenceNumber(40)) { isDone.value = $0 }
        #expect(isDone.value == true)
        #expect(store.left == 7)
        let run = (40...41).map { number in
            OrderedAction<ModelState<Stock>>(
                action: .add(amount: 1), context: ActionContext(sequence: SequenceNumber(number)))
        }
        store.core.deliver(run) { _ in }
        #expect(store.left == 8)
        #expect(store.core.position == SequenceNumber(41))
    }

    @Test func `a routed store sends its own dispatches away, and takes deliveries`() async throws {
        let road = Road()
        let (core, state) = tallyCore()
        core.setRoute(road)
        core.dispatch(1)
        let handle = core.dispatchTracked(2)
        #expect(road.numbers == [1, 2])
        #expect(state.told.isEmpty)
        core.deliver(run(1...1)) { _ in }
        #expect(state.told == [1])

        let receipt = Receipt(
            log: .random(), epoch: Epoch(1), sequence: SequenceNumber(8), timestamp: Timestamp(0))
        road.block.settle(from: 0, count: 2, with: .committed(receipt))
        #expect(try await handle.receipt().sequence == SequenceNumber(9))

        core.setRoute(nil)
        core.dispatch(3)
        #expect(state.told == [1, 3])
    }

    @Test func `a bridged state's global dispatches go to the route instead of the stores`() {
        let scope = Scope()
        let road = Road()
        let store = scope.run { tallyStore() }
        scope.channel(of: TallyState.self).setRoute(road)
        scope.run { Store<TallyState>.actions.tell(1) }
        scope.run { _ = Store<TallyState>.actions.dispatch(2) }
        store.actions.tell(3)
        #expect(road.numbers == [1, 2])
        #expect(store.computed.numbers == [3])
        scope.channel(of: TallyState.self).setRoute(nil)
        scope.run { Store<TallyState>.actions.tell(4) }
        #expect(store.computed.numbers == [3, 4])
    }

    @Test func `a routed store takes no part in a global dispatch that has no route`() async {
        let scope = Scope()
        let store = scope.run { tallyStore() }
        store.core.setRoute(Road())
        let handle = scope.run { Store<TallyState>.actions.dispatch(1) }
        #expect(store.computed.numbers.isEmpty)
        await #expect { try await handle.receipt() } throws: {
            ($0 as? DispatchError)?.code == .rejected
        }
    }

    @Test func `the release of a store is reported once, even to late subscribers`() {
        let (core, _) = tallyCore()
        let told = Mutex(0)
        core.whenClosed { told.withLock { $0 += 1 } }
        let token = core.whenClosed { told.withLock { $0 += 100 } }
        if let token { core.forgetClose(token) }
        core.close()
        core.close()
        #expect(told.withLock { $0 } == 1)
        #expect(core.whenClosed { told.withLock { $0 += 1 } } == nil)
        #expect(told.withLock { $0 } == 2)
    }
}
