import ConfluxNode
import Dispatch
import Testing

/// Opening and closing while other things happen.
struct HostingTests {
    @Test func `closing waits until a store with a queue of its own has applied`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let observer = try await world.node()
            let queue = DispatchQueue(label: "slow")
            let store = try await node.store(Journal.self, executor: .queue(queue))
            let there = try await observer.store(Journal.self)
            queue.suspend()
            let handle = store.dispatch(.write("x"))
            try await wait(for: there) { $0.lines == ["x"] }
            let closing = Task { await node.close() }
            // The outbox takes no more once the node has begun to leave.
            for _ in 0..<200 { _ = await node.status }
            queue.resume()
            try await handle.receipt()
            #expect(store.lines == ["x"])
            await closing.value
            await observer.close()
        }
    }
}
