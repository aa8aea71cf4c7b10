import Conflux
import Foundation
import Synchronization
import Testing

/// All concepts at the same time, from many tasks: nothing is lost, doubled or stuck. The thread sanitizer
/// checks it, too.
@Suite(.timeLimit(.minutes(10)))
struct ConceptStressTests {
    /// What a task has done, as counted by the task itself.
    private struct Count: Sendable {
        var added = 0
        var addedEverywhere = 0
        var numbers = 0
        var events = 0
        var emitted = 0
    }

    /// The stores, all in one scope.
    private struct World: Sendable {
        let scope = Scope()
        let immediate: ModelStore<Stock>
        let queued: ModelStore<Stock>
        let numbers: Storage<Int>
        let account: ModelStore<Account>
        let recorded: Storage<Int>
        let recorder: Recorder<StorageState<Int>>
        let emitted = Atomic64()

        init() {
            let scope = scope
            (immediate, queued, numbers, account, recorded) = scope.run {
                (
                    ModelStore<Stock>(),
                    ModelStore<Stock>(executor: .within(DispatchQueue(label: "stress"))),
                    Storage(0), ModelStore<Account>(), Storage(0)
                )
            }
            recorder = Recorder(recorded, capacity: 8)
        }
    }

    private final class Atomic64: Sendable {
        private let value = Atomic(0)
        var count: Int { value.load(ordering: .relaxed) }
        func raise() { value.add(1, ordering: .relaxed) }
    }

    /// `script/sanitize --stress` starts with another seed each time.
    private static let firstSeed =
        ProcessInfo.processInfo.environment["CONFLUX_STRESS_SEED"].flatMap { UInt64($0) } ?? 0

    @Test(arguments: firstSeed..<firstSeed + 3)
    func `all concepts work at the same time`(seed: UInt64) async throws {
        let world = World()
        let emitted = world.emitted
        let observation = world.numbers.activities(of: UInt64.self).observe { _ in emitted.raise() }
        defer { observation.dispose() }
        let total = try await withThrowingTaskGroup(of: Count.self) { group in
            for worker in 0..<6 as Range<UInt64> {
                group.addTask {
                    var random = SplitMix64(seed: seed << 8 | worker)
                    var count = Count()
                    for _ in 0..<60 { try await Self.step(world, &random, &count) }
                    return count
                }
            }
            return try await group.reduce(into: Count()) { total, count in
                total.added += count.added
                total.addedEverywhere += count.addedEverywhere
                total.numbers += count.numbers
                total.events += count.events
                total.emitted += count.emitted
            }
        }
        #expect(world.immediate.left == total.added + total.addedEverywhere)
        #expect(world.queued.left == total.addedEverywhere)
        #expect(world.numbers.value == total.numbers)
        #expect(emitted.count == total.emitted)
        #expect(total.events == 0 || world.account.user != nil)
        #expect((1...8).contains(world.recorder.steps.count))
        // Nothing is blocked afterwards.
        for _ in 0..<3 { try await world.queued.dispatch(.add(amount: 1)).receipt() }
        #expect(world.scope.lockInForce == nil)
    }

    private static func step(
        _ world: World, _ random: inout SplitMix64, _ count: inout Count
    ) async throws {
        let (scope, stock) = (world.scope, world.immediate)
        switch Int.random(in: 0..<16, using: &random) {
        case 0:
            try await stock.dispatch(.add(amount: 1)).receipt()
            count.added += 1
        case 1:
            let modes: [DispatchMode] = [.async, .serial, .mainThread]
            let mode = modes.randomElement(using: &random) ?? .async
            try await scope.dispatch(.add(amount: 1), to: stock, mode: mode).receipt()
            count.added += 1
        case 2, 3:
            try await scope.run { Store<ModelState<Stock>>.actions.dispatch(.add(amount: 1)) }
                .receipt()
            count.addedEverywhere += 1
        case 4, 5:
            try await scope.chain().dispatch(.add(amount: 1), to: stock)
                .dispatch(.add(amount: 1), to: world.queued)
                .change(world.numbers) { $0.replace($0.value + 1) }.react().receipt()
            count.addedEverywhere += 1
            count.numbers += 1
        case 6:
            try await scope.chain().change(world.numbers) { $0.replace($0.value + 1) }.react()
                .receipt()
            count.numbers += 1
        case 7:
            try await scope.send(LoggedIn(user: "\(random.next())")).receipt()
            count.events += 1
        case 8:
            try await scope.withLock { _ in
                let before = stock.left
                try await stock.dispatch(.add(amount: 1)).receipt()
                try await stock.dispatch(.add(amount: 1)).receipt()
                #expect(stock.left == before + 2)
            }
            count.added += 2
        case 9:
            world.numbers.emit(random.next())
            count.emitted += 1
        case 10:
            try await world.numbers.commit("more") { $0.replace($0.value + 1) }.receipt()
            count.numbers += 1
        case 11:
            try await world.recorded.commit { $0.replace($0.value + 1) }.receipt()
            try? world.recorder.back()
            try? world.recorder.forward()
        case 12:
            let middleware = scope.use(ActionLogger { _ in })
            try await stock.dispatch(.add(amount: 1)).receipt()
            count.added += 1
            middleware.dispose()
        case 13:
            // Another task may have set the opposite order: then this one is refused.
            let pair = Bool.random(using: &random)
            let order =
                pair
                ? try? scope.order(world.queued, after: stock)
                : try? scope.order(stock, after: world.queued)
            try await scope.run { Store<ModelState<Stock>>.actions.dispatch(.add(amount: 1)) }
                .receipt()
            count.addedEverywhere += 1
            order?.dispose()
        case 14:
            var changes = stock.changes(of: \.left).makeAsyncIterator()
            try await stock.dispatch(.add(amount: 1)).receipt()
            count.added += 1
            let change = try #require(await changes.next())
            #expect(change.new > change.old)
        default:
            let name = "n\(Int.random(in: 0..<3, using: &random))"
            if let registration = try? scope.register(stock, as: name) {
                #expect(throws: Never.self) { try scope.store(name, of: ModelState<Stock>.self) }
                registration.dispose()
            }
            await scope.performSerially { stock.dispatch(.add(amount: 1)) }.end()
            count.added += 1
        }
    }
}
