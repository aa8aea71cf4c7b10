import ConfluxNode
import Testing

/// Whoever reads the changes of a store is told when there will be no more.
@Suite(.timeLimit(.minutes(5)))
struct WatcherEndTests {
    struct Hall: Model, Equatable {
        static let name = "hall"
        var price = 0
        enum Action: Codable, Sendable { case set(Int) }
        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .set(let price): self.price = price
            }
        }
    }

    enum Way: CaseIterable { case closingTheNode, releasingTheNode, closingTheStore, dropping }

    /// Reads a sequence to its end.
    private static func read<Elements: AsyncSequence & Sendable>(
        _ name: String, _ elements: Elements
    ) -> Task<(String, Int), any Error> {
        Task {
            var count = 0
            for try await _ in elements { count += 1 }
            return (name, count)
        }
    }

    /// Waits for a value that never comes.
    private static func waiter(_ hall: ModelStore<Hall>) -> Task<(String, Int), any Error> {
        Task {
            do throws(StoreError) {
                _ = try await hall.value { $0.price == 6 }
                return ("a wait", 0)
            } catch {
                return ("a wait", error.code == .ended ? 1 : 0)
            }
        }
    }

    private static func readers(
        _ hall: ModelStore<Hall>, _ tally: Store<TallyState>
    ) -> [Task<(String, Int), any Error>] {
        [
            read("changed", hall.changed(\.price).values),
            read("mapped", hall.changed(\.price).map { "\($0)" }.values),
            read("on a queue", hall.changed(\.price).observe(on: .queue(.global())).values),
            read("read only", hall.readOnly.changed(\.price).values),
            read("at a place", hall.changes(at: "/price").values),
            read("changes of a part", hall.changes(of: \.price)),
            read("changes", hall.changes),
            read("changes by actions", hall.committedActions.values),
            waiter(hall), read("activities", hall.activities(of: Int.self).values),
            read("a state's variable", tally.computed.state.count.signal.values),
            read("a state's constant", tally.computed.state.count.constant.signal.values),
        ]
    }

    @Test(arguments: Way.allCases)
    func `every sequence ends after its last element`(_ way: Way) async throws {
        try await withWorld { world in
            var node: Node? = try await world.node("alpha")
            let hall = try await #require(node).store(Hall.self)
            let tally = try await #require(node).store(TallyState.self)
            let readers = Self.readers(hall, tally)
            let events = Self.read("events", try #require(node).events)
            // The last change is read, too, although its readers may not have begun.
            try await hall.dispatch(.set(5)).receipt()
            hall.emit(1)
            switch way {
            case .closingTheNode: await node?.close()
            case .releasingTheNode: node = nil
            case .closingTheStore:
                node?.close(hall)
                node?.close(tally)
            case .dropping:
                try await node?.drop(hall)
                try await node?.drop(tally)
            }
            for reader in readers {
                let (name, count) = try await withDeadline { try await reader.value }
                #expect(count >= 1 || name.hasPrefix("changes"), "\(name) had \(count) elements")
            }
            // Who comes later gets the value that there is, and no more.
            for reader in Self.readers(hall, tally) {
                _ = try await withDeadline { try await reader.value }
            }
            await node?.close()
            _ = try await withDeadline { try await events.value }
        }
    }

    @Test func `a store that is replicated again is watched again`() async throws {
        try await withWorld { world in
            let first = try await world.node("alpha")
            let hall = try await first.store(Hall.self)
            await first.close()
            let second = try await world.node("beta")
            try await second.replicate(hall)
            var prices = hall.changed(\.price).values.makeAsyncIterator()
            #expect(await prices.next() == 0)
            try await hall.dispatch(.set(7)).receipt()
            #expect(await prices.next() == 7)
            await second.close()
            #expect(await prices.next() == nil)
        }
    }
}
