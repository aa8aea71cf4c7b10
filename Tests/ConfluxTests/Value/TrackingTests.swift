import Conflux
import Dispatch
import Observation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct TrackingTests {
    struct Screen: Sendable {
        /// A value that can't be compared.
        struct Picture: Sendable { var name = "a" }

        var count = 0
        var title = ""
        var picture = Picture()
        var countText: String { "\(count)" }
        var tags: [String: Int] = [:]
    }

    /// Counts how often the values that a function reads were reported as changed.
    private final class Tracker: Sendable {
        private let changes = Mutex(0)
        var count: Int { changes.withLock { $0 } }

        func track(_ read: () -> Void) {
            withObservationTracking(read) { [weak self] in self?.changes.withLock { $0 += 1 } }
        }
    }

    @Test func `a part that is read is tracked until it changes, and others are not`() {
        let stock = ModelStore<Stock>()
        let tracker = Tracker()
        tracker.track { _ = stock.takings }
        stock.dispatch(.add(amount: 5))
        #expect(tracker.count == 0)
        stock.dispatch(.take(amount: 1))
        #expect(tracker.count == 1)
        stock.dispatch(.take(amount: 1))
        #expect(tracker.count == 1)
        tracker.track { _ = stock.takings }
        stock.dispatch(.take(amount: 1))
        #expect(tracker.count == 2)
    }

    @Test func `several parts are tracked together, and reported once`() {
        let storage = Storage(Screen())
        let tracker = Tracker()
        tracker.track { _ = (storage.count, storage.title, storage.readOnly.countText) }
        storage.update(\.tags, to: ["a": 1])
        #expect(tracker.count == 0)
        storage.commit { draft in
            draft.count = 3
            draft.title = "b"
        }
        #expect(tracker.count == 1)
        tracker.track { _ = storage.tags["b"] }
        storage.update(\.tags["c"], to: 1)
        #expect(tracker.count == 2)
        tracker.track { _ = storage[dynamicMember: \.tags["b"]] }
        storage.update(\.tags["d"], to: 1)
        #expect(tracker.count == 2)
        storage.update(\.tags["b"], to: 1)
        #expect(tracker.count == 3)
    }

    @Test func `observers of incomparable parts or the whole value are notified after each action`()
    {
        let storage = Storage(Screen())
        let tracker = Tracker()
        for read in [
            { _ = storage.picture }, { _ = storage.value }, { _ = storage.readOnly.value },
        ] {
            let before = tracker.count
            tracker.track(read)
            storage.updateIfChanged(\.count, to: storage.count)
            #expect(tracker.count == before)
            storage.update(\.count, to: storage.count + 1)
            #expect(tracker.count == before + 1)
        }
    }

    @Test func `a part that is no longer read is no longer compared`() {
        struct Counted: Equatable, Sendable {
            static let comparisons = Mutex(0)
            static func == (first: Counted, second: Counted) -> Bool {
                comparisons.withLock { $0 += 1 }
                return first.number == second.number
            }
            var number = 0
        }
        struct Board { var part = Counted() }
        let board = Storage(Board())
        let tracker = Tracker()
        tracker.track { _ = board.part }
        for number in 1...2 { board.update(\.part, to: Counted(number: number)) }
        #expect(tracker.count == 1)
        let comparisons = Counted.comparisons.withLock { $0 }
        #expect(comparisons == 2)
        board.update(\.part, to: Counted(number: 3))
        #expect(Counted.comparisons.withLock { $0 } == comparisons)
    }

    @Test func `a change is visible when onChange runs, and the function may dispatch`() {
        let stock = ModelStore<Stock>()
        let seen = Late<Int>()
        withObservationTracking {
            _ = stock.left
        } onChange: {
            seen.value = stock.left
            stock.dispatch(.add(amount: 1))
        }
        stock.dispatch(.add(amount: 5))
        #expect(seen.value == 5)
        #expect(stock.left == 6)
    }

    @Test func `a restored snapshot, a chain and a step back are changes`() throws {
        let scope = Scope()
        let stock = scope.run { ModelStore<Stock>() }
        let recorder = Recorder(stock)
        let tracker = Tracker()
        tracker.track { _ = stock.left }
        stock.core.restore(Stock(left: 9), at: SequenceNumber(4)) { _ in }
        #expect(tracker.count == 1)
        tracker.track { _ = stock.left }
        scope.chain().dispatch(.add(amount: 1), to: stock).react()
        #expect(tracker.count == 2)
        tracker.track { _ = stock.left }
        try recorder.back()
        #expect(tracker.count == 3)
    }

    @Test func `an untracked read tracks nothing`() {
        let stock = ModelStore<Stock>()
        let other = ModelStore<Stock>()
        let tracker = Tracker()
        tracker.track { _ = other.left }
        #expect(stock.left == 0)
        stock.dispatch(.add(amount: 1))
        #expect(tracker.count == 0)
        withExtendedLifetime(stock.changed(\.left).observe { _ in _ = other.left }) {}
        other.dispatch(.add(amount: 1))
        #expect(tracker.count == 1)
    }

    @Test func `trackers keep no store alive, and a store keeps no tracker alive`() {
        weak var gone: ModelStore<Stock>?
        weak var state: ModelState<Stock>?
        weak var captured: Late<Int>?
        do {
            let stock = ModelStore<Stock>()
            let late = Late<Int>()
            (gone, state, captured) = (stock, stock.computed.state, late)
            withObservationTracking {
                _ = stock.left
            } onChange: {
                late.value = 1
            }
        }
        #expect(gone == nil && state == nil && captured == nil)
    }

    @Test func `a generic function takes a value store as observable`() {
        func read<Subject: Observable>(_ subject: Subject, _ part: KeyPath<Subject, Int>) -> Int {
            subject[keyPath: part]
        }
        #expect(read(ModelStore(Stock(left: 3)), \.left) == 3)
        #expect(read(Storage(Screen(count: 4)), \.count) == 4)
    }

    @available(macOS 26, *)
    @Test func `observations follow a store`() async {
        let stock = ModelStore<Stock>()
        let observations = Observations { stock.left }
        var iterator = observations.makeAsyncIterator()
        #expect(await iterator.next() == 0)
        for amount in 1...3 {
            async let next = iterator.next()
            stock.dispatch(.add(amount: amount))
            #expect(await next == stock.left)
        }
    }

    /// On threads, since the tests beside this one can keep the tasks' threads busy for a long time.
    @Test func `observers track while threads dispatch, and see the last value`() {
        let stock = ModelStore<Stock>(executor: .queue(.global()))
        let (isTracking, changed) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        onThreads(2) { index in
            if index == 0 {
                isTracking.wait()
                for _ in 0..<500 { stock.dispatch(.add(amount: 1)) }
                awaitCondition { stock.left == 500 }
                // The last change may have come before tracking began.
                changed.signal()
                return
            }
            var last = -1
            while last < 500 {
                let left = withObservationTracking {
                    stock.left
                } onChange: {
                    changed.signal()
                }
                #expect(left >= last)
                if last < 0 { isTracking.signal() }
                last = left
                guard last == 500 || changed.wait(timeout: .now() + 30) == .success else {
                    Issue.record("the change from \(last) to \(stock.left) was not reported")
                    return
                }
            }
        }
        #expect(stock.left == 500)
    }
}
