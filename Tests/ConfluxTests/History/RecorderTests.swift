import Conflux
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RecorderTests {
    let scope = Scope()

    @Test func `steps back and forward restore past and future values`() throws {
        let stock = scope.run { ModelStore(Stock(left: 1)) }
        let recorder = Recorder(stock)
        stock.dispatch(.add(amount: 1))
        stock.dispatch(.take(amount: 9))
        stock.dispatch(.add(amount: 2))
        #expect(recorder.steps.map(\.value.left) == [1, 2, 4])
        #expect(recorder.steps.map(\.action) == [nil, "add(amount: 1)", "add(amount: 2)"])
        try recorder.back()
        #expect(stock.left == 2 && recorder.position == 1)
        try recorder.back()
        #expect(stock.left == 1)
        let first = #expect(throws: StoreError.self) { try recorder.back() }
        #expect(first?.code == .noSuchStep && stock.left == 1)
        #expect(
            first?.message == """
                There is no value -1: 3 are kept, from 0 on, and the store is at 0. Choose one of those \
                (`steps`).
                """)
        try recorder.jump(to: 2)
        #expect(stock.left == 4)
        #expect(throws: StoreError.self) { try recorder.forward() }
        #expect(throws: StoreError.self) { try recorder.jump(to: 3) }
        try recorder.jump(to: 0)
        try recorder.forward()
        #expect(stock.left == 2)
    }

    @Test func `an action after a step back replaces the steps ahead`() throws {
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock)
        for amount in 1...3 { stock.dispatch(.add(amount: amount)) }
        try recorder.jump(to: 1)
        stock.dispatch(.add(amount: 10))
        #expect(recorder.steps.map(\.value.left) == [0, 1, 11])
        #expect(throws: StoreError.self) { try recorder.forward() }
    }

    @Test func `the oldest values are dropped at the capacity`() throws {
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock, capacity: 3)
        for _ in 1...5 { stock.dispatch(.add(amount: 1)) }
        #expect(recorder.steps.map(\.value.left) == [3, 4, 5])
        try recorder.jump(to: 0)
        #expect(stock.left == 3)
    }

    @Test func `observers are notified of a step as of any change`() throws {
        let storage = scope.run { Storage(0) }
        let recorder = Recorder(storage)
        storage.commit("one") { $0.replace(1) }
        let seen = Late<Int>()
        storage.observe { seen.value = $0 }
        try recorder.back()
        #expect(seen.value == 0)
        #expect(recorder.steps.last?.action == "one")
    }

    @Test func `an exported recording can be imported elsewhere`() throws {
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock)
        for amount in 1...3 { stock.dispatch(.add(amount: amount)) }
        try recorder.back()
        let bytes = try recorder.export()

        let other = scope.run { ModelStore<Stock>() }
        let second = Recorder(other)
        try second.import(bytes)
        #expect(other.left == 3 && second.position == 2 && second.steps.count == 4)
        try second.forward()
        #expect(other.left == 6)

        let small = Recorder(scope.run { ModelStore<Stock>() }, capacity: 2)
        try small.import(bytes)
        #expect(small.steps.count == 2)
        #expect(small.steps[small.position].value.left == 3)
    }

    @Test func `an invalid recording changes nothing`() throws {
        let stock = scope.run { ModelStore(Stock(left: 3)) }
        let recorder = Recorder(stock)
        stock.dispatch(.add(amount: 1))
        for text in ["", "{}", #"{"format":1,"position":1,"steps":[]}"#] {
            #expect(throws: (any Error).self) { try recorder.import(Array(text.utf8)) }
        }
        let bytes = Array(#"{"format":2,"position":0,"steps":[]}"#.utf8)
        let error = #expect(throws: StoreError.self) { try recorder.import(bytes) }
        #expect(error?.code == .unreadable)
        #expect(stock.left == 4 && recorder.steps.count == 2)
    }

    @Test func `a disposed or released recorder records nothing more`() {
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock)
        recorder.dispose()
        stock.dispatch(.add(amount: 1))
        #expect(recorder.steps.count == 1 && recorder.isDisposed)
        weak var gone: Recorder<ModelState<Stock>>?
        do {
            let short = Recorder(stock)
            gone = short
            stock.dispatch(.add(amount: 1))
            #expect(short.steps.count == 2)
        }
        #expect(gone == nil)
    }

    @Test func `a chain is one step, and its intermediate values are never visible`() throws {
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock)
        scope.chain().dispatch(.add(amount: 1), to: stock)
            .dispatch(.add(amount: 2), to: stock).react()
        scope.chain("sale").dispatch(.add(amount: 4), to: stock)
            .dispatch(.take(amount: 2), to: stock).react()
        #expect(recorder.steps.map(\.value.left) == [0, 3, 5])
        #expect(
            recorder.steps.map(\.action) == [
                nil, "add(amount: 1), add(amount: 2)", "sale",
            ])
        try recorder.back()
        #expect(stock.left == 3)
        try recorder.back()
        #expect(stock.left == 0)
    }

    @Test func `an action that changes nothing is not a step`() throws {
        struct Tally: Codable, Sendable { var count = 0 }
        let number = scope.run { Storage(1) }
        let tally = scope.run { Storage(Tally()) }
        let recorder = Recorder(number)
        let other = Recorder(tally)
        number.commit { _ in }
        number.replace(1)
        number.updateIfChanged(\.self, to: 1)
        tally.update(\.count, to: 0)
        scope.chain().change(number) { $0.replace(2) }.change(number) { $0.replace(1) }.react()
        #expect(recorder.steps.count == 1 && other.steps.count == 1)
        number.replace(2)
        number.replace(2)
        tally.update(\.count, to: 1)
        #expect(recorder.steps.map(\.value) == [1, 2])
        #expect(other.steps.map(\.value.count) == [0, 1])
        try recorder.back()
        number.replace(1)
        try recorder.forward()
        #expect(number.value == 2)
    }

    @Test
    func
        `steps that wait are made one after the other, and one that is impossible then is skipped`()
        throws
    {
        let held = HeldExecutor()
        let stock = scope.run { ModelStore<Stock>(executor: held.executor) }
        held.runAll()
        let recorder = Recorder(stock)
        held.runAll()
        for amount in 1...3 { stock.dispatch(.add(amount: amount)) }
        held.runAll()
        // The store is at the newest value until the steps are made.
        #expect(throws: StoreError.self) { try recorder.forward() }
        for _ in 1...4 { try recorder.back() }
        #expect(recorder.position == 3 && stock.left == 6)
        held.runAll()
        #expect(recorder.position == 0 && stock.left == 0)
        try recorder.jump(to: 3)
        try recorder.forward()
        held.runAll()
        #expect(stock.left == 6)
    }

    @Test
    func `a step that commits made impossible is skipped`()
        throws
    {
        let held = HeldExecutor()
        let stock = scope.run { ModelStore<Stock>(executor: held.executor) }
        let recorder = Recorder(stock)
        held.runAll()
        for amount in 1...3 { stock.dispatch(.add(amount: amount)) }
        held.runAll()
        try recorder.jump(to: 1)
        held.runAll()
        stock.dispatch(.add(amount: 10))
        try recorder.jump(to: 3)
        held.runOne()
        #expect(recorder.steps.map(\.value.left) == [0, 1, 11])
        #expect(recorder.position == 2)
        try recorder.back()
        held.runAll()
        #expect(stock.left == 1 && recorder.position == 1)
    }

    @Test func `steps that a lock delays are made when it is released`() throws {
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock)
        stock.dispatch(.add(amount: 1))
        let lock = scope.lock()
        try recorder.back()
        #expect(throws: StoreError.self) { try recorder.forward() }
        #expect(stock.left == 1 && recorder.position == 1)
        lock.release()
        #expect(stock.left == 0 && recorder.position == 0)
    }

    @Test func `a step that is impossible in its turn changes nothing`() throws {
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock)
        stock.dispatch(.add(amount: 1))
        recorder.dispose()
        let lock = scope.lock()
        try recorder.back()
        stock.dispatch(.add(amount: 7))
        try recorder.back()
        lock.release()
        // The first step leads to 0. The second one has nowhere to go, so what was added stays.
        #expect(stock.left == 7 && recorder.position == 0)
    }

    @Test func `a step back from inside an observer comes after the commit`() throws {
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock)
        stock.dispatch(.add(amount: 1))
        stock.observe(\.left) { value in
            if value.left == 6 { try? recorder.back() }
        }
        stock.dispatch(.add(amount: 5))
        #expect(stock.left == 1)
        #expect(recorder.steps.map(\.value.left) == [0, 1, 6] && recorder.position == 1)
    }
    @Test func `steps in both directions from inside an observer lead to the right values`() throws
    {
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock)
        let failures = Late<[StoreError]>()
        stock.observe { value in
            guard value.left == 5, failures.value == nil else { return }
            failures.value = []
            var thrown: [StoreError] = []
            // The present commit is already recorded. The step before it is the first value.
            for step in [recorder.back, recorder.forward, recorder.back] {
                do throws(StoreError) { try step() } catch { thrown.append(error) }
            }
            failures.value = thrown
        }
        stock.dispatch(.add(amount: 5))
        // The steps are made when the observers have returned, so there is nothing to go forward to.
        #expect(failures.value?.map(\.code) == [.noSuchStep])
        #expect(stock.left == 0 && recorder.position == 0)
    }
}
