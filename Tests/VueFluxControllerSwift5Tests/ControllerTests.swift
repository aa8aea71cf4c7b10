import Conflux
import Dispatch
import Testing

// A controller of the main actor, as applications have it. Its targets make warnings errors: in
// each language mode it must compile as silently as it does with VueFlux.

final class TallyState: State {
    typealias Action = Int
    typealias Mutations = TallyMutations

    fileprivate let count = Variable(0)
}

struct TallyMutations: Mutations {
    func commit(action: Int, state: TallyState) {
        state.count.value += action
    }
}

extension Computed where State == TallyState {
    var count: Signal<Int> { return state.count.signal }
}

@MainActor
final class TallyLabel {
    var text: String?
    var number = 0
    var isHidden = true
}

@MainActor
final class TallyController {
    let label = TallyLabel()
    let store = Store<TallyState>(state: .init(), mutations: .init(), executor: .mainThread)
    private(set) var shown = [String: Int]()
    private(set) var endings = 0
    private var scope: DisposableScope? = DisposableScope()
    private var latest: Disposable = AnyDisposable()

    private var binder: Binder<Int> {
        return Binder(target: label) { label, count in label.isHidden = count == 0 }
    }

    private var prefix: String { return "count" }

    func viewDidLoad() {
        let count = store.computed.count
        count.observe { [weak self] number in self?.show(number, by: "closure") }
        count.observe(show)
        count.observe(on: .mainThread).observe(duringScopeOf: self) { [weak self] number in
            self?.show(number, by: "scoped")
        }
        scope += count.observe(on: .mainThread).observe(self.showToo)
        count.map { "\(self.prefix) \($0)" }.bind(to: label, \.text)
        count.bind(to: label, \.number, on: .immediate)
        count.bind(to: self) { controller, number in controller.show(number, by: "binding") }
        count.bind(to: self, on: .immediate) { controller, number in
            controller.show(number, by: "immediate")
        }
        count.bind(to: binder)
        binder.bind(signal: count, on: .immediate)
        Executor.mainThread.execute { self.show(-1, by: "executor") }
        Executor.immediate.execute(finish)
        scope += AnyDisposable { self.finish() }
        scope += AnyDisposable(finish)
        latest = count.observe { self.show($0, by: "latest") }
        latest.dispose()
        latest = Signal<Int> { [weak self] send in
            send(self?.endings ?? 0)
            return AnyDisposable { self?.finish() }
        }.observe { self.show($0, by: "producer") }
    }

    func viewDidDisappear() {
        scope = nil
        latest.dispose()
    }

    func buttonTapped() {
        store.actions.dispatch(action: 1)
    }

    private func show(_ number: Int) {
        show(number, by: "method")
    }

    private func showToo(_ number: Int) {
        show(number, by: "method on main")
    }

    private func show(_ number: Int, by way: String) {
        shown[way] = number
    }

    private func finish() {
        endings += 1
    }
}

@MainActor
struct ControllerTests {
    @Test func `a controller of the main actor shows and ends`() {
        let controller = TallyController()
        controller.viewDidLoad()
        #expect(controller.endings == 1)
        controller.buttonTapped()
        let ways = ["closure", "method", "scoped", "method on main", "binding", "immediate"]
        for way in ways { #expect(controller.shown[way] == 1, "\(way)") }
        #expect(controller.shown["executor"] == -1)
        #expect(controller.shown["latest"] == 0)
        #expect(controller.shown["producer"] == 1)
        #expect(controller.label.text == "count 1")
        #expect(controller.label.number == 1)
        #expect(!controller.label.isHidden)
        controller.viewDidDisappear()
        #expect(controller.endings == 4)
        controller.buttonTapped()
        #expect(controller.shown["method on main"] == 1)
        #expect(controller.shown["method"] == 2)
    }

    @Test func `closures change variables of their function`() {
        var seen = [Int]()
        let variable = Variable(1)
        variable.signal.map { number -> Int in
            seen.append(0)
            return number
        }.observe { seen.append($0) }
        #expect(seen == [0, 1])
    }
}
