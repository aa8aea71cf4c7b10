import Conflux
import Testing

protocol Executing {
    func execute(_ function: @escaping () -> Void)
}

extension Executor: Executing {}

protocol Observing {
    associatedtype Value
    func observe(_ observer: @escaping (Value) -> Void) -> Disposable
}

extension Signal: Observing {}

protocol Watching {
    func watch(_ signal: Signal<Int>) -> Disposable
}

struct Watcher: Watching {
    func watch(_ signal: Signal<Int>) -> Disposable {
        return signal.observe { _ in }
    }
}

/// A disposable of the client's own, whose class may change.
final class Flag: Disposable {
    var isDisposed = false
    func dispose() { isDisposed = true }
}

extension ClientTests {
    /// Each way in which programs hold what `observe` returns.
    @MainActor
    final class DisposableFormTests {
        private let signal = Variable(1).signal
        private var seen = [Int]()

        @Test(arguments: [true, false]) func `a choice of disposables`(isOn: Bool) {
            let chosen: Disposable =
                isOn ? signal.observe { self.seen.append($0) } : AnyDisposable()
            let scope = DisposableScope()
            scope += isOn ? signal.observe { self.seen.append($0) } : AnyDisposable()
            let bound: Disposable =
                isOn ? signal.bind(to: self, on: .immediate) { $0.seen.append($1) } : Flag()
            #expect(seen == (isOn ? [1, 1, 1] : []))
            bound.dispose()
            chosen.dispose()
            #expect(chosen.isDisposed && bound.isDisposed)
        }

        @Test func `a variable for disposables`() {
            var current = signal.observe { _ in }
            let first = current
            current.dispose()
            current = AnyDisposable()
            current = Flag()
            current = signal.observe(duringScopeOf: self) { _ in }
            #expect(first.isDisposed && !current.isDisposed)
        }

        @Test func `arrays of disposables`() {
            var all = [signal.observe { _ in }]
            all.append(AnyDisposable())
            all += [Flag(), signal.bind(to: self, on: .immediate) { _, _ in }]
            let scope = DisposableScope(all)
            scope.dispose()
            #expect(all.allSatisfy { $0.isDisposed })
        }

        @Test func `requirements that return a disposable`() {
            func observe<Source: Observing>(_ source: Source) -> Disposable {
                return source.observe { _ in }
            }
            let watcher: Watching = Watcher()
            let disposables = [watcher.watch(signal), observe(signal)]
            for disposable in disposables { disposable.dispose() }
            #expect(disposables.allSatisfy { $0.isDisposed })
        }

        @Test func `methods as observers, and an executor as what it conforms to`() {
            signal.observe(see)
            let executor: Executing = Executor.immediate
            executor.execute { self.see(2) }
            executor.execute(seeThree)
            #expect(seen == [1, 2, 3])
        }

        private func see(_ number: Int) { seen.append(number) }
        private func seeThree() { see(3) }
    }
}
