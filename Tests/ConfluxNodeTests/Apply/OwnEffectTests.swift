import Conflux
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// What this node reports about its own refused actions.
struct OwnEffectTests {
    private let name = StoreName(state: Name("tally")!, instance: .shared)

    /// Whether the node still has the error itself, and not only its message.
    private func hasError(_ setup: ApplierSetup, at sequence: SequenceNumber) throws -> Bool {
        guard case .refused(_, let error) = try setup.progress(of: name).effect(of: sequence) else {
            Issue.record("it was not refused")
            return false
        }
        return error != nil
    }

    @Test func `a refusal carries the error itself, which is then released`() async throws {
        let setup = try ApplierSetup()
        let failed = try setup.dispatchFailures(3)
        #expect(try hasError(setup, at: failed.sequence))
        setup.settle(
            failed.counter, 3, .committed(setup.log, failed.sequence, Epoch(1), Timestamp(0)))
        let error = await #expect(throws: DispatchError.self) {
            try await failed.handle.receipt()
        }
        #expect(error?.code == .refused)
        #expect(error?.reason is Refusal)
        for offset in 0..<3 as Range<UInt64> {
            #expect(try !hasError(setup, at: failed.sequence.advanced(by: offset)))
        }
    }

    @Test(arguments: [#"{"unknown":{}}"#, #"{"add":{"_0":1,"note":"new"}}"#])
    func `an action in another form is refused, and the reason asks for a new version`(
        payload: String
    ) throws {
        let setup = try ApplierSetup()
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .store(name), schemaVersion: 1, coding: .json),
            payload: Array(payload.utf8))
        setup.deliver(
            .commit(
                Commit(
                    log: setup.log, epoch: Epoch(1), predecessor: Epoch(1),
                    first: SequenceNumber(3), count: 1, timestamp: Timestamp(0),
                    blocks: [.batch(setup.own, builder.finish(firstCounter: 1, settled: 0))]),
                byteCount: 100))
        guard
            case .refused(let message, _) =
                try setup.progress(of: name).effect(of: SequenceNumber(3))
        else {
            Issue.record("it was not refused")
            return
        }
        #expect(message.hasPrefix("formChanged: "))
        #expect(message.contains("raise schemaVersion of tally whenever they change"))
    }

    @Test func `a refusal that is no longer known is reported as unknown`() async throws {
        let setup = try ApplierSetup(refusalBytesMax: 1)
        let failed = try setup.dispatchFailures(3)
        setup.settle(
            failed.counter, 3, .committed(setup.log, failed.sequence, Epoch(1), Timestamp(0)))
        let error = await #expect(throws: DispatchError.self) {
            try await failed.handle.receipt()
        }
        #expect(error?.code == .effectUnknown)
    }

    /// With a session key, the next process submits actions again that are already in the log.
    @Test func `a refusal that arrived before its action was submitted again is reported`()
        async throws
    {
        let setup = try ApplierSetup()
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .store(name), schemaVersion: 1, coding: .json),
            payload: Array("{\"fail\":{}}".utf8))
        let commit = Commit(
            log: setup.log, epoch: Epoch(1), predecessor: Epoch(1), first: SequenceNumber(3),
            count: 1, timestamp: Timestamp(0),
            blocks: [.batch(setup.own, builder.finish(firstCounter: 1, settled: 0))])
        setup.deliver(.commit(commit, byteCount: 100))
        let block = OutcomeBlock()
        _ = block.reserve()
        setup.applier.perform(
            .submitted(
                SubmittedBatch(
                    firstCounter: 1, count: 1, block: block,
                    spans: [SubmittedBatch.Span(target: .store(name), count: 1)])))
        setup.settle(1, 1, .committed(setup.log, commit.first, Epoch(1), Timestamp(0)))
        let error = await #expect(throws: DispatchError.self) {
            try await DispatchHandle(block: block, index: 0).receipt()
        }
        #expect(error?.code == .refused)
    }
}
