import Conflux
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// What is kept of this node's refused actions, until their outcome is told.
struct OwnFailuresTests {
    @Test func `a refusal is told with its outcome, and kept no longer`() async throws {
        let setup = try ApplierSetup()
        let failed = try setup.dispatchFailures(3)
        #expect(setup.applier.ownFailures.count == 3)
        setup.settle(
            failed.counter, 3, .committed(setup.log, failed.sequence, Epoch(1), Timestamp(0)))
        let error = await #expect(throws: DispatchError.self) {
            try await failed.handle.receipt()
        }
        #expect(error?.code == .refused)
        #expect(setup.applier.ownFailures.isEmpty)
    }

    @Test func `a refusal whose outcome stays unknown is not kept`() throws {
        let setup = try ApplierSetup()
        let failed = try setup.dispatchFailures(3)
        setup.settle(failed.counter, 3, .unknown)
        #expect(setup.applier.ownFailures.isEmpty)
        // Nor is one that is applied after nobody waits for it any more.
        let late = try setup.dispatchFailures(2)
        setup.settle(late.counter, 2, .unknown)
        #expect(setup.applier.ownFailures.isEmpty)
    }

    @Test func `refusals whose outcomes stay unknown are bounded while others are awaited`() throws
    {
        let setup = try ApplierSetup()
        for _ in 0..<500 {
            let failed = try setup.dispatchFailures(1)
            let other = try setup.dispatchFailures(1)
            _ = try setup.dispatchFailures(1)
            setup.settle(failed.counter, 1, .unknown)
            setup.settle(
                other.counter, 1, .committed(setup.log, other.sequence, Epoch(1), Timestamp(0)))
            #expect(setup.applier.ownFailures.count <= OwnFailures.reviewMin + 2)
        }
    }
}
