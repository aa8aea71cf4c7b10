import Conflux
import Synchronization
import Testing

struct DisposableTests {
    @Test func `a function runs once however many threads dispose`() {
        let runs = Atomic<Int>(0)
        let disposable = AnyDisposable { runs.add(1, ordering: .relaxed) }
        onThreads(100) { _ in disposable.dispose() }
        #expect(runs.load(ordering: .relaxed) == 1)
        #expect(disposable.isDisposed)
    }

    @Test func `a function is released with its captures`() {
        let released = Seen<Bool>()
        let disposable: AnyDisposable
        do {
            let capture = Witness { released.add(true) }
            disposable = AnyDisposable { capture.stay() }
        }
        #expect(released.values == [])
        disposable.dispose()
        #expect(released.values == [true])
    }

    @Test func `a scope disposes in the order of addition, and later additions at once`() {
        let seen = Seen<Int>()
        let scope = DisposableScope([AnyDisposable { seen.add(1) }])
        scope += AnyDisposable { seen.add(2) }
        var other: DisposableScope? = DisposableScope()
        other += AnyDisposable { seen.add(0) }
        other = nil
        #expect(seen.values == [0])
        scope.dispose()
        scope.dispose()
        scope += AnyDisposable { seen.add(3) }
        #expect(seen.values == [0, 1, 2, 3])
        #expect(scope.isDisposed)
        #expect(other == nil)
    }

    @Test func `a hundred threads add while one disposes`() {
        let runs = Atomic<Int>(0)
        let scope = DisposableScope()
        onThreads(101) { thread in
            if thread == 100 { return scope.dispose() }
            for _ in 0..<100 { scope += AnyDisposable { runs.add(1, ordering: .relaxed) } }
        }
        #expect(runs.load(ordering: .relaxed) == 10_000)
    }

    @Test func `a scope doesn't keep disposables that are already disposed`() {
        let released = Seen<Bool>()
        let scope = DisposableScope()
        do {
            let ended = Ended(witness: Witness { released.add(true) })
            ended.dispose()
            scope += ended
        }
        #expect(released.values == [true])
        #expect(!scope.isDisposed)
    }

    @Test func `a long-lived scope forgets disposables that ended by themselves`() {
        let released = Atomic<Int>(0)
        let active = Atomic<Int>(0)
        let scope = DisposableScope()
        scope += AnyDisposable { active.add(1, ordering: .relaxed) }
        for _ in 0..<1_000 {
            let ended = Ended(witness: Witness { released.add(1, ordering: .relaxed) })
            scope += ended
            ended.dispose()
        }
        #expect(released.load(ordering: .relaxed) >= 1_000 - 64)
        scope.dispose()
        #expect(released.load(ordering: .relaxed) == 1_000)
        #expect(active.load(ordering: .relaxed) == 1)
    }
}

private final class Ended: Disposable {
    private let witness: Witness
    private let hasEnded = Atomic<Bool>(false)

    init(witness: Witness) { self.witness = witness }

    var isDisposed: Bool { hasEnded.load(ordering: .relaxed) }
    func dispose() { hasEnded.store(true, ordering: .relaxed) }
}

struct AtomicReferenceTests {
    @Test func `a hundred threads change one value`() {
        let number = AtomicReference(0)
        let swapped = AtomicReference(0)
        onThreads(100) { thread in
            for _ in 0..<100 { number.modify { $0 += 1 } }
            number.synchronized { #expect($0 >= 100) }
            swapped.swap(thread)
        }
        #expect(number.value == 10_000)
        #expect((0..<100).contains(swapped.value))
    }

    @Test func `the old value is released outside the lock`() {
        let reference = AtomicReference<Witness?>(nil)
        let seen = Seen<Bool>()
        reference.value = Witness { [weak reference] in seen.add(reference?.value == nil) }
        reference.value = nil
        #expect(seen.values == [true])
    }

    @Test func `a recursive reference is reused while it is read`() {
        let reference = AtomicReference(1, recursive: true)
        let sum = reference.synchronized { value in
            reference.value = 10
            return value + reference.value
        }
        #expect(sum == 11)
    }

    @Test func `an error is rethrown and the lock is released`() {
        struct Failure: Error {}
        let reference = AtomicReference(1)
        #expect(throws: Failure.self) { try reference.modify { _ in throw Failure() } }
        #expect(throws: Failure.self) { try reference.synchronized { _ in throw Failure() } }
        #expect(reference.value == 1)
    }
}
