import Conflux
import Foundation
import Testing

/// Objects that nobody references any more are freed, whatever concept used them.
@Suite(.timeLimit(.minutes(5)))
struct ConceptReleaseTests {
    typealias Numbers = Storage<Int>

    /// Something to do with a scope and stores, which are then released.
    struct Use: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let run: @Sendable (Scope, ModelStore<Stock>, Numbers) async throws -> Void

        init(
            _ name: String,
            _ run: @escaping @Sendable (Scope, ModelStore<Stock>, Numbers) async throws -> Void
        ) {
            testDescription = name
            self.run = run
        }
    }

    static let uses = [
        Use("global dispatch") { scope, _, _ in
            try await scope.run { Store<ModelState<Stock>>.actions.dispatch(.add(amount: 1)) }
                .receipt()
        },
        Use("modes") { scope, stock, _ in
            for mode in DispatchMode.allCases {
                try await scope.dispatch(.add(amount: 1), to: stock, mode: mode) { _ in
                    scope.dispatch(.add(amount: 1), to: stock)
                }.receipt()
            }
        },
        Use("operations") { scope, stock, _ in
            let first = scope.perform { stock.dispatch(.add(amount: 1)) }
            scope.dispatch(.add(amount: 1), to: stock, after: first)
            await scope.performSerially { stock.dispatch(.add(amount: 1)) }.end()
        },
        Use("middleware") { scope, stock, _ in
            scope.use(ActionLogger { _ in })
            scope.use(Interceptor(), for: stock)
            try await stock.dispatch(.add(amount: 1)).receipt()
        },
        Use("events") { scope, _, _ in
            let account = scope.run { ModelStore<Account>() }
            try await scope.send(LoggedIn(user: "a")).receipt()
            #expect(account.user == "a")
        },
        Use("transactions") { scope, stock, numbers in
            try await scope.chain().dispatch(.add(amount: 1), to: stock)
                .change(numbers) { $0.replace(1) }.react().receipt()
            scope.chain().dispatch(.add(amount: 1), to: stock).abort()
            // A chain that is neither reacted to nor aborted.
            _ = scope.chain().dispatch(.add(amount: 1), to: stock)
        },
        Use("locks") { scope, stock, _ in
            try await scope.withLock { _ in try await stock.dispatch(.add(amount: 1)).receipt() }
            scope.lock().release()
            let lock = try scope.lock(dispatching: .take(amount: 9), to: stock)
            await lock.inForce()
        },
        Use("a lock that is let go while dispatches wait for it") { scope, stock, _ in
            let lock = scope.lock()
            await lock.inForce()
            stock.dispatch(.add(amount: 1))
            let handle = stock.dispatch(.add(amount: 1))
            withExtendedLifetime(lock) {}
            lock.release()
            try await handle.receipt()
        },
        Use("order") { scope, stock, numbers in
            try scope.order(stock, after: numbers)
            try await stock.dispatch(.add(amount: 1)).receipt()
        },
        Use("storage") { _, _, numbers in
            numbers.commit("one") { $0.replace(1) }
            numbers.update(\.self, to: 2)
            numbers.updateIfChanged(\.self, to: 2)
        },
        Use("activities") { _, _, numbers in
            numbers.activities(of: Int.self).observe { _ in }
            numbers.emit(1)
            numbers.perform("two") { reference in _ = reference.store?.emit(2) }
        },
        Use("signals of a value") { _, stock, _ in
            stock.changed(\.left).observe { [weak stock] _ in _ = stock?.left }
            stock.observe(\.left) { _ in }
            stock.changes(at: "/left").observe { _ in }
            var changes = stock.changes(of: \.left).makeAsyncIterator()
            stock.dispatch(.add(amount: 1))
            #expect(await changes.next()?.new == 1)
            _ = stock.changed(\.left).values.makeAsyncIterator()
        },
        Use("a task that reads changes") { _, stock, _ in
            let changes = stock.changes
            Task { for await _ in changes {} }.cancel()
        },
        Use("recorder") { _, stock, _ in
            let recorder = Recorder(stock)
            try await stock.dispatch(.add(amount: 1)).receipt()
            try recorder.back()
        },
        Use("archive") { scope, stock, numbers in
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("conflux-release-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: folder) }
            let archive = try Archive(folder: folder)
            let kept = try archive.keep(stock, as: "a")
            _ = try archive.keep(numbers, as: "b", idle: .milliseconds(1))
            try await stock.dispatch(.add(amount: 1)).receipt()
            try kept.save()
        },
        Use("reducers") { scope, _, _ in
            let wallet = scope.run { ModelStore<Wallet>() }
            try await wallet.dispatch(SetAmount(value: 1)).receipt()
        },
        Use("names") { scope, stock, _ in
            try scope.register(stock, as: "stock")
            #expect(try scope.store("stock", of: ModelState<Stock>.self) === stock)
        },
        Use("a queue of its own") { scope, _, _ in
            let store = scope.run {
                ModelStore<Stock>(executor: .within(DispatchQueue(label: "own")))
            }
            for _ in 0..<10 { store.dispatch(.add(amount: 1)) }
        },
    ]

    @Test(arguments: uses)
    func `nothing is kept alive`(use: Use) async throws {
        weak var scope: Scope?
        weak var stock: ModelStore<Stock>?
        weak var state: ModelState<Stock>?
        weak var numbers: Numbers?
        try await {
            let own = Scope()
            let (store, storage) = own.run { (ModelStore<Stock>(), Numbers(0)) }
            (scope, stock, state, numbers) = (own, store, store.computed.state, storage)
            try await use.run(own, store, storage)
        }()
        // Code on other threads may reference them a moment longer.
        let end = ContinuousClock.now + .seconds(60)
        while scope != nil || stock != nil || state != nil || numbers != nil,
            ContinuousClock.now < end
        {
            await Task.yield()
        }
        #expect(stock == nil && state == nil && numbers == nil)
        #expect(scope == nil)
    }
}
