import Conflux
import Dispatch
import Foundation
import Synchronization
import Testing

struct AppState: Codable, Sendable, Equatable {
    var counter = 0
    var text = ""
    var info = Info()
    var _internal = "not observed"
}

struct Info: Codable, Sendable, Equatable {
    var title = ""
    var tags: [String: String] = [:]
}

struct Login: Event {
    var username: String
}

struct Session: Model, EventHandling {
    static let name = "session"
    static let events = EventHandlers<Action>().on(Login.self) { .signIn($0.username) }
    var user: String?

    enum Action: Codable, Sendable { case signIn(String) }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .signIn(let name): user = name
        }
    }
}

struct Feed: Model, EventHandling {
    static let name = "feed"
    static let events = EventHandlers<Action>().on(Login.self) { _ in .reload }
    var loads = 0

    enum Action: Codable, Sendable { case reload }

    mutating func apply(_ action: Action, _ context: ActionContext) { loads += 1 }
}

final class Screen: Sendable {
    let lines = Mutex<[String]>([])

    init(mixing substance: Storage<AppState>) {
        substance.changed(\.counter).observe(duringScopeOf: self) { [weak self] counter in
            self?.lines.withLock { $0.append("counter = \(counter)") }
        }
        substance.changed(\.text).observe(duringScopeOf: self) { [weak self] text in
            self?.lines.withLock { $0.append("text = \(text)") }
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromFlask {
    let scope = Scope()

    @Test func `a chain's changes to several stores become visible together or not at all`() {
        let (substanceA, substanceB) = scope.run { (Storage(AppState()), Storage(AppState())) }
        scope.chain()
            .change(substanceA) { $0.counter += 10 }
            .change(substanceB) { $0.text = "text" }
            .react()
        #expect(substanceA.counter == 10 && substanceB.text == "text")
        scope.chain()
            .change(substanceA) { $0.counter = 0 }
            .abort()
        #expect(substanceA.counter == 10)
    }

    @Test func `one event is handled by stores of different states, with its payload`() {
        let (session, feed) = scope.run {
            (ModelStore<Session>(), ModelStore<Feed>())
        }
        scope.send(Login(username: "foo"))
        #expect(session.user == "foo" && feed.loads == 1)
    }

    @Test func `a lock pauses the flow, and lets its holder through`() {
        let substance = scope.run { Storage(AppState()) }
        let lock = scope.lock()
        substance.update(\.counter, to: 1)
        lock.run { substance.update(\.text, to: "exclusive") }
        #expect(substance.counter == 0 && substance.text == "exclusive")
        lock.release()
        #expect(substance.counter == 1)
    }

    @Test func `an observer's change to another store comes before the next observer runs`() {
        let (substanceA, substanceB) = scope.run { (Storage(AppState()), Storage(AppState())) }
        let seen = Mutex<[String]>([])
        substanceA.observe(\.counter) { value in
            substanceB.update(\.counter, to: value.counter)
        }
        substanceB.observe(\.counter) { _ in seen.withLock { $0.append("B") } }
        substanceA.observe(\.counter) { _ in seen.withLock { $0.append("A") } }
        substanceA.update(\.counter, to: 1)
        #expect(seen.withLock { $0 } == ["B", "A"])
    }

    @Test func `mode serial has one line for all stores`() async throws {
        let (substanceA, substanceB) = scope.run { (Storage(AppState()), Storage(AppState())) }
        let seen = Mutex<[String]>([])
        substanceA.observe(\.counter) { [scope] value in
            scope.dispatch(to: substanceB, mode: .serial) { $0.counter = value.counter }
        }
        substanceB.observe(\.counter) { _ in seen.withLock { $0.append("B") } }
        substanceA.observe(\.counter) { _ in seen.withLock { $0.append("A") } }
        let mix = scope.dispatch(to: substanceA, mode: .serial) { $0.counter = 1 }
        try await mix.receipt()
        try await scope.dispatch(to: substanceA, mode: .serial) { _ in }.receipt()
        #expect(seen.withLock { $0 } == ["A", "B"])
    }

    @Test func `the observer that reacts to an action releases its lock later`() async throws {
        let substance = scope.run { Storage(AppState()) }
        substance.observe(\.text) { [scope] _ in
            let lock = scope.lockInForce
            DispatchQueue.global().async { lock?.release() }
        }
        scope.lock(changing: substance) { $0.text = "a" }
        try await substance.update(\.counter, to: 1).receipt()
        #expect(scope.lockInForce == nil)
        // Where nothing has changed nobody reacts, and the lock is released by itself.
        let same = scope.lock(changing: substance) { $0.text = "a" }
        #expect(scope.lockInForce == nil)
        withExtendedLifetime(same) {}
    }

    @Test func `nested keys are reported with old and new values, and internal ones are not`() {
        let substance = scope.run { Storage(AppState()) }
        let changes = Mutex<[Change<JSONValue?>]>([])
        substance.changes(at: "/info/title").observe { change in
            changes.withLock { $0.append(change) }
        }
        substance.changes(at: "/info/tags/color").observe { change in
            changes.withLock { $0.append(change) }
        }
        substance.update(\.info.title, to: "mutated")
        substance.update(\.info.tags["color"], to: "red")
        substance.update(\._internal, to: "x")
        #expect(changes.withLock { $0.count } == 2)
        #expect(
            changes.withLock { $0.map { $0.new ?? .null } } == [.string("mutated"), .string("red")])
    }

    @Test func `keys of a dictionary without a fixed form are reported too`() {
        struct Profile: Codable, Sendable { var info: JSONValue = nil }
        let profile = scope.run { Storage(Profile()) }
        let titles = Mutex<[JSONValue]>([])
        profile.changes(at: "/info/nest/title").observe { change in
            titles.withLock { $0.append(change.new ?? .null) }
        }
        profile.update(\.info, to: ["nest": ["title": "some"]])
        #expect(titles.withLock { $0 } == ["some"])
    }

    @Test func `a reactor is notified of the keys that it names`() {
        let substance = scope.run { Storage(AppState()) }
        let screen = Screen(mixing: substance)
        substance.update(\.counter, to: 1)
        substance.update(\.text, to: "a")
        #expect(
            screen.lines.withLock { $0 } == ["counter = 0", "text = ", "counter = 1", "text = a"])
    }

    @Test func `a reaction ends with its owner`() {
        final class Owner {}
        let substance = scope.run { Storage(AppState()) }
        let seen = Mutex<[Int]>([])
        var owner: Owner? = Owner()
        if let owner {
            substance.changed(\.counter).observe(duringScopeOf: owner) { counter in
                seen.withLock { $0.append(counter) }
            }
        }
        substance.update(\.counter, to: 1)
        owner = nil
        substance.update(\.counter, to: 2)
        #expect(owner == nil && seen.withLock { $0 } == [0, 1])
    }

    @Test func `a state is archived once it is idle, and restored at the next start`()
        async throws
    {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let archive = try Archive(folder: folder, space: "1")
        let substance = Storage(AppState())
        let kept = try archive.keep(substance, as: "uniqueName", idle: .milliseconds(1))
        var saves = kept.saves.values.makeAsyncIterator()
        substance.update(\.info.title, to: "mutated")
        try await saves.next()?.get()
        kept.isEnabled = false

        let archived = Storage(AppState())
        let keptAgain = try archive.keep(archived, as: "uniqueName")
        #expect(archived.info.title == "mutated")
        withExtendedLifetime(keptAgain) {}
    }
}
