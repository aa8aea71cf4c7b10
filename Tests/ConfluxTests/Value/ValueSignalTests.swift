import Conflux
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ValueSignalTests {
    @Test func `a part's signal has the present value, then each that differs`() {
        let stock = ModelStore(Stock(left: 3))
        let seen = Mutex<[Int]>([])
        stock.changed(\.left).observe { value in seen.withLock { $0.append(value) } }
        stock.dispatch(.add(amount: 0))
        stock.dispatch(.add(amount: 2))
        stock.dispatch(.take(amount: 5))
        #expect(seen.withLock { $0 } == [3, 5, 0])
    }

    @Test func `a custom comparison decides which values differ`() {
        let stock = ModelStore<Stock>()
        let seen = Mutex<[Int]>([])
        stock.changed(\.left, isSame: { $0 / 10 == $1 / 10 })
            .observe { value in seen.withLock { $0.append(value) } }
        for _ in 0..<25 { stock.dispatch(.add(amount: 1)) }
        #expect(seen.withLock { $0 } == [0, 10, 20])
    }

    private final class Owner {}

    @Test func `observers whose owner is gone are freed as others begin to observe`() {
        let (storage, variable) = (Storage(0), Variable(0))
        let freed = Seen<String>()
        for _ in 0..<100 {
            let owner = Owner()
            let (first, second) = (Witness { freed.add("part") }, Witness { freed.add("variable") })
            storage.changed(\.self).observe(duringScopeOf: owner) { _ in first.stay() }
            variable.signal.observe(duringScopeOf: owner) { _ in second.stay() }
        }
        // No value changes.
        let parts = freed.values.count { $0 == "part" }
        #expect(parts >= 98 && parts == freed.values.count - parts)
    }

    @Test func `a signal of a part is an asynchronous sequence, too`() async {
        let stock = ModelStore(Stock(left: 3))
        var values = stock.changed(\.left).values.makeAsyncIterator()
        #expect(await values.next() == 3)
        stock.dispatch(.add(amount: 1))
        #expect(await values.next() == 4)
    }

    @Test func `an observer gets the present value first if it wants that`() {
        let stock = ModelStore(Stock(left: 10))
        let seen = Seen<String>()
        stock.observe(\.left, initial: true) { seen.add("left \($0.left)") }
        stock.observe(\.left, \.takings, initial: true) { _, changed in
            let names: [PartialKeyPath<Stock>: String] = [
                \.left: "left", \.takings: "takings",
            ]
            seen.add(changed.compactMap { names[$0] }.sorted().joined(separator: "+"))
        }
        stock.observe(initial: true) { seen.add("all \($0.left)") }
        stock.observe(initial: true) { _, changed in seen.add("\(changed.count)") }
        #expect(seen.values == ["left 10", "left+takings", "all 10", "0"])
        stock.dispatch(.add(amount: 1))
        #expect(seen.values.dropFirst(4) == ["left 11", "left", "all 11", "0"])
        stock.dispatch(.add(amount: 0))
        #expect(seen.values.dropFirst(8) == ["all 11", "0"])
    }

    @Test func `an observer is called only for its parts, or for everything`() {
        let stock = ModelStore(Stock(left: 10))
        let some = Mutex(0)
        let two = Mutex(0)
        let all = Mutex(0)
        stock.observe(\.takings) { _ in some.withLock { $0 += 1 } }
        stock.observe(\.takings, \.left) { _ in two.withLock { $0 += 1 } }
        stock.observe { _ in all.withLock { $0 += 1 } }
        stock.dispatch(.add(amount: 1))
        stock.dispatch(.take(amount: 1))
        stock.dispatch(.add(amount: 0))
        #expect(some.withLock { $0 } == 1)
        #expect(two.withLock { $0 } == 2)
        #expect(all.withLock { $0 } == 3)
    }

    @Test func `an observer of several parts gets those that changed`() {
        let stock = ModelStore(Stock(left: 10))
        let seen = Mutex<[Set<String>]>([])
        let names: @Sendable (Set<PartialKeyPath<Stock>>) -> Set<String> = { changed in
            Set(
                [(\Stock.left, "left"), (\.takings, "takings")].compactMap { path, name in
                    changed.contains(path) ? name : nil
                })
        }
        stock.observe(\.takings, \.left) { value, changed in
            #expect(value == stock.value)
            seen.withLock { $0.append(names(changed)) }
        }
        stock.readOnly.observe { _, changed in #expect(changed.isEmpty) }
        stock.dispatch(.add(amount: 1))
        stock.dispatch(.take(amount: 1))
        stock.dispatch(.take(amount: 0))
        stock.dispatch(.add(amount: 0))
        #expect(seen.withLock { $0 } == [["left"], ["left", "takings"], ["takings"]])
    }

    @Test func `an observer ends when it is disposed, or with its owner or holder`() {
        let stock = ModelStore<Stock>()
        let count = Mutex(0)
        var owner: AnyObject? = Late<Int>()
        if let owner {
            stock.changed(\.left).observe(duringScopeOf: owner) { _ in count.withLock { $0 += 1 } }
        }
        var bag: DisposableScope? = DisposableScope()
        bag += stock.observe { _ in count.withLock { $0 += 10 } }
        let registration = stock.observe { _ in count.withLock { $0 += 100 } }
        stock.dispatch(.add(amount: 1))
        #expect(count.withLock { $0 } == 112)
        owner = nil
        bag = nil
        registration.dispose()
        stock.dispatch(.add(amount: 1))
        #expect(count.withLock { $0 } == 112)
        withExtendedLifetime((owner, bag)) {}
    }

    @Test func `an observer may dispatch`() {
        let stock = ModelStore<Stock>()
        stock.observe(\.left) { [weak stock] value in
            if value.left < 5 { stock?.dispatch(.add(amount: 1)) }
        }
        stock.dispatch(.add(amount: 1))
        #expect(stock.left == 5)
    }

    @Test func `neither store nor observer is kept alive by a signal`() {
        weak var store: ModelStore<Stock>?
        weak var state: ModelState<Stock>?
        weak var captured: Late<Int>?
        do {
            let stock = ModelStore<Stock>()
            let late = Late<Int>()
            (store, state, captured) = (stock, stock.computed.state, late)
            stock.changed(\.left).observe { late.value = $0 }
            stock.changes(at: "/left").observe { _ in late.value = nil }
            stock.activities(of: Int.self).observe { late.value = $0 }
            stock.dispatch(.add(amount: 1))
            stock.emit(7)
            #expect(late.value == 7)
        }
        #expect(store == nil && state == nil && captured == nil)
    }

    /// A model that reports whether an action had to copy what it changed.
    struct Shelf: Model {
        final class Buffer: Codable, Sendable {}

        static let name = "shelf"
        var buffer = Buffer()
        var copyCount = 0
        var note = 0

        enum Action: Codable, Sendable { case touch }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if !isKnownUniquelyReferenced(&buffer) {
                buffer = Buffer()
                copyCount += 1
            }
            note += 1
        }
    }

    @Test func `observing a value takes as long beside ten thousand observers as alone`() {
        func shortest(beside count: Int) -> Duration {
            let storage = Storage(0)
            for _ in 0..<count { storage.observe(\.self) { _ in } }
            let durations = (0..<20).map { _ in
                ContinuousClock().measure {
                    for _ in 0..<50 { storage.observe(\.self) { _ in }.dispose() }
                }
            }
            return durations.min() ?? .zero
        }
        // To copy or search the list would take hundreds of times as long.
        #expect(shortest(beside: 10_000) < shortest(beside: 0) * 20)
    }

    @Test func `observers that compare nothing make actions copy nothing`() throws {
        let shelf = ModelStore<Shelf>()
        let notices = Mutex(0)
        shelf.observe { _ in notices.withLock { $0 += 1 } }
        shelf.observe(\.note) { _ in notices.withLock { $0 += 1 } }
        shelf.readOnly.observe { _ in notices.withLock { $0 += 1 } }
        let folder = ArchiveTests.Folder()
        let kept = try Archive(folder: folder.url).keep(shelf, as: "shelf", idle: .seconds(3_600))
        for _ in 0..<3 { shelf.dispatch(.touch) }
        #expect(shelf.copyCount == 0)
        #expect(notices.withLock { $0 } == 9)
        let changes = shelf.changes
        for _ in 0..<3 { shelf.dispatch(.touch) }
        #expect(shelf.copyCount == 1)
        withExtendedLifetime((kept, changes)) {}
    }

    @Test func `observers come and go while threads dispatch`() async {
        let stock = ModelStore<Stock>(executor: .queue(.global()))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<100 { _ = try? await stock.dispatch(.add(amount: 1)).receipt() }
                }
                group.addTask {
                    for _ in 0..<50 {
                        let last = Mutex(-1)
                        let observation = stock.changed(\.left).observe { value in
                            last.withLock { last in
                                #expect(value > last)
                                last = value
                            }
                        }
                        await Task.yield()
                        observation.dispose()
                    }
                }
            }
        }
        #expect(stock.left == 400)
    }
}

struct Window: Codable, Sendable, Equatable {
    var title = "a"
    var _scroll = 0
    var tags: [String: Int] = [:]
}

@Suite(.timeLimit(.minutes(5)))
struct ValuePathTests {
    struct Settings: Codable, Sendable, Equatable {
        var info = Window()
        var pages: [Window] = []
        var _internal = ""
    }

    private func record(
        _ storage: Storage<Settings>, _ path: JSONPointer
    ) -> Lines {
        let box = Lines([])
        storage.changes(at: path).observe { change in
            box.append("\(Self.text(change.old)) > \(Self.text(change.new))")
        }
        return box
    }

    private static func text(_ value: JSONValue?) -> String {
        guard let value, let bytes = try? value.canonicalBytes() else { return "-" }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `a nested property comes with its old and new value`() {
        let storage = Storage(Settings())
        let seen = record(storage, "/info/title")
        storage.update(\.info.title, to: "b")
        storage.update(\.pages, to: [Window()])
        storage.update(\.info.title, to: "b")
        #expect(seen.content == [#""a" > "b""#])
    }

    @Test func `keys of dictionaries come and go`() {
        let storage = Storage(Settings())
        let seen = record(storage, "/info/tags/x.y")
        storage.update(\.info.tags["x.y"], to: 1)
        storage.update(\.info.tags["x.y"], to: 2)
        storage.update(\.info.tags["z"], to: 2)
        storage.update(\.info.tags["x.y"], to: nil)
        #expect(seen.content == ["- > 1", "1 > 2", "2 > -"])
    }

    @Test func `elements of arrays are counted`() {
        let storage = Storage(Settings())
        let seen = record(storage, "/pages/0/title")
        storage.update(\.pages, to: [Window(title: "c")])
        storage.update(\.pages[0].title, to: "d")
        #expect(seen.content == [#"- > "c""#, #""c" > "d""#])
    }

    @Test func `internal properties are left out, however deep`() {
        let storage = Storage(Settings())
        let whole = record(storage, "")
        storage.update(\._internal, to: "x")
        storage.update(\.info._scroll, to: 7)
        #expect(whole.content.isEmpty)
        storage.update(\.info.title, to: "b")
        #expect(whole.content.count == 1)
        #expect(whole.content.allSatisfy { !$0.contains("_") })
    }

    @MainActor
    @Test func `a class of the main actor observes a store for as long as it lives`() {
        let stock = ModelStore(Stock(left: 3))
        let lines = Lines([])
        var panel: Panel? = Panel(of: stock, lines)
        stock.dispatch(.add(amount: 2))
        #expect(panel?.left == 5)
        #expect(lines.content == ["any", "left", "read-only", "left changed"])
        panel = nil
        stock.dispatch(.add(amount: 2))
        #expect(lines.content.count == 4)
    }

    @Test func `an observation's disposable is like any other`() {
        let stock = ModelStore<Stock>()
        let lines = Lines([])
        var latest: any Disposable = AnyDisposable()
        latest = stock.observe { _ in lines.append("store") }
        latest.dispose()
        latest = stock.readOnly.observe(\.left) { _ in lines.append("read-only") }
        stock.dispatch(.add(amount: 1))
        latest.dispose()
        stock.dispatch(.add(amount: 1))
        #expect(lines.content == ["read-only"])
    }
}

@MainActor
private final class Panel {
    private(set) var left = 0
    private let lines: Lines

    init(of stock: ModelStore<Stock>, _ lines: Lines) {
        self.lines = lines
        stock.observe(duringScopeOf: self) { [weak self] stock in self?.show(stock, "any") }
        stock.observe(\.left, duringScopeOf: self) { [weak self] stock in
            self?.show(stock, "left")
        }
        stock.readOnly.observe(\.left, duringScopeOf: self) { [weak self] stock in
            self?.show(stock, "read-only")
        }
        stock.readOnly.observe(\.left, duringScopeOf: self) { [weak self] stock, changed in
            self?.show(stock, changed == [\Stock.left] ? "left changed" : "nothing changed")
        }
    }

    private func show(_ stock: Stock, _ line: String) {
        left = stock.left
        lines.append(line)
    }
}

/// Lines that a closure and a test share.
private final class Lines: Sendable {
    private let lines: Mutex<[String]>
    init(_ lines: [String]) { self.lines = Mutex(lines) }
    var content: [String] { lines.withLock { $0 } }
    func append(_ line: String) { lines.withLock { $0.append(line) } }
}
