import Conflux
import Dispatch
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

struct LostHistoryTests {
    @Test func `a store's progress in a lost history does not count in the next one`() throws {
        let queue = DispatchQueue(label: "conflux.tests.lost-history")
        let setup = try ApplierSetup(executor: .queue(queue))
        queue.sync {}
        setup.workBehind()
        let name = try #require(StoreName("tally/shared"))
        setup.deliver(.begin(.store(name)))
        setup.deliver(.attach(.store(name)))
        queue.suspend()
        let refused = try setup.dispatchFailures(1)
        #expect(setup.applier.progress.applied < refused.sequence)
        setup.deliver(.reset)
        // The store is slow. It applies the entry only now, when another entry has its number.
        queue.resume()
        queue.sync {}
        setup.workBehind()
        #expect(setup.applier.progress.applied == .zero)
        #expect(setup.applier.progress.resets == 1)
        // Its bytes were counted when they were delivered to the store.
        #expect(setup.applier.progress.liveBytes == 100)
        let effects = try setup.progress(of: name).effects
        #expect(effects.byteCount == 0)
    }
}
