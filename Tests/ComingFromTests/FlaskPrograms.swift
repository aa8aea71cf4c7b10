import Conflux
import Testing

enum ReduxStyle {
    struct AppState: Sendable {
        var counter = 0
        var text = ""
    }

    @MainActor
    final class ViewController {
        let substance = Storage(AppState())
        private(set) var lines: [String] = []

        func viewDidLoad() {
            substance.observe(\.counter, duringScopeOf: self) { [weak self] state in
                self?.lines.append("counter = \(state.counter)")
            }
            substance.observe(\.text, duringScopeOf: self) { [weak self] state in
                self?.lines.append("text = \(state.text)")
            }
        }

        func produceTestReaction() {
            Scope.current.chain()
                .change(substance) { $0.counter = 10 }
                .change(substance) { $0.text = "changed!" }
                .react()
        }
    }
}

enum FluxorStyle {
    struct Login: Event { var username: String }
    struct Logout: Event {}

    struct AppState: EventHandling {
        static let events = EventHandlers<StorageCommit<AppState>>()
            .on(Login.self) { _ in StorageCommit { $0.title = "signed" } }
        var counter = 0
        var title = ""
    }

    enum Subs {
        static let appReactive = Storage(AppState())
    }

    @MainActor
    final class ViewController {
        private(set) var lines: [String] = []

        func viewDidLoad() {
            Subs.appReactive.observe(\.title, duringScopeOf: self) { [weak self] state in
                self?.lines.append("global title = \(state.title)")
            }
        }

        func produceTestReaction() {
            Scope.current.send(Login(username: "foo"))
        }
    }
}

@MainActor
@Suite(.timeLimit(.minutes(5)))
struct ComingFromFlaskAsAWhole {
    @Test func `Redux style: a chain of mixes is reacted to, until the controller is gone`() {
        var controller: ReduxStyle.ViewController? = ReduxStyle.ViewController()
        controller?.viewDidLoad()
        controller?.produceTestReaction()
        #expect(controller?.lines == ["counter = 10", "text = changed!"])
        weak let gone = controller
        controller = nil
        #expect(gone == nil)
    }

    @Test func `Fluxor style: a shared substance reacts to an event`() {
        let controller = FluxorStyle.ViewController()
        controller.viewDidLoad()
        controller.produceTestReaction()
        #expect(controller.lines == ["global title = signed"])
        Scope.current.send(FluxorStyle.Logout())
        #expect(controller.lines.count == 1)
    }
}
