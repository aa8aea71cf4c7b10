import Conflux
import Dispatch
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

struct LostHistoryTests {
    @Test func `what a store reports of a lost history is no progress in the next one`() throws {
        let queue = DispatchQueue(label: "conflux.tests.lost-history")
        let setup = try ApplierSetup(executor: .queue(queue))
        queue.sync {}
        setup.applier.perform(.finished)
        queue.suspend()
        let refused = try setup.dispatchFailures(1)
        setup.deliver(.reset)
        // The store is slow: it has the entry only now, and its number is another's by then.
        queue.resume()
        queue.sync {}
        setup.told.inputs.withLock { $0 = [] }
        setup.applier.perform(.finished)
        #expect(setup.applier.applied == .zero)
        #expect(setup.applier.refusals.message(of: refused.sequence) == nil)
        let inputs = setup.told.inputs.withLock { $0 }
        let bytes = inputs.compactMap { input in
            if case .applied(.zero, let bytes) = input { bytes } else { nil }
        }
        #expect(inputs.count == 1 && bytes == [100])
    }
}
