import Conflux
@testable import ConfluxProtocol
import ConfluxVocabulary
import Testing

@testable import ConfluxNode

/// What the log tells of an action whose outcome nobody waits for any more.
struct OutcomeSearchTests {
    private static let log = LogID(high: 1, low: 1)
    /// Action 7 of the node that entry 3 let in. Entry 10, of the term 4, was in the log before.
    private static let token = DispatchToken(
        log: log, origin: Origin(incarnation: Incarnation(3), counter: 7),
        since: StoreVersion(sequence: SequenceNumber(10), epoch: Epoch(4)))

    private enum Block {
        case actions(of: UInt64, from: UInt64, Int)
        case forgotten(UInt64)
    }

    private func commit(
        at first: UInt64, epoch: UInt64 = 4, log: LogID = log, _ blocks: Block...
    ) -> Commit {
        let made = blocks.map { block -> Commit.Block in
            switch block {
            case .forgotten(let incarnation): return .event(.forgotten(Incarnation(incarnation)))
            case .actions(let incarnation, let counter, let count):
                var builder = BatchBuilder()
                for _ in 0..<count {
                    builder.append(
                        target: BatchTarget(
                            target: Target("tally/shared")!, schemaVersion: 1, coding: .json),
                        payload: Array("{}".utf8))
                }
                return .batch(
                    Incarnation(incarnation), builder.finish(firstCounter: counter, settled: 0))
            }
        }
        return Commit(
            log: log, epoch: Epoch(epoch), predecessor: Epoch(epoch),
            first: SequenceNumber(first), count: made.reduce(0) { $0 + $1.count },
            timestamp: Timestamp(5), blocks: made)
    }

    /// What a search finds in commits: the number, or the code of the error; nil if that is open.
    private func found(_ commits: Commit...) -> String? {
        var search = OutcomeSearch(for: Self.token)
        for commit in commits {
            switch search.take(commit) {
            case nil: continue
            case .success(let receipt): return "\(receipt.sequence)@\(receipt.epoch)"
            case .failure(let error): return "\(error.code)"
            }
        }
        return nil
    }

    @Test func `an action is found by its counter`() {
        #expect(
            found(commit(at: 9, .actions(of: 8, from: 1, 2), .actions(of: 3, from: 5, 4))) == "13@4"
        )
        #expect(
            found(
                commit(at: 10, .actions(of: 3, from: 6, 1)),
                commit(at: 11, .actions(of: 8, from: 7, 1)),
                commit(at: 12, epoch: 5, .actions(of: 3, from: 7, 1))) == "12@5")
    }

    @Test func `a later action of the session, or its end, says that the action never comes`() {
        let before = commit(at: 10, .actions(of: 3, from: 6, 1))
        #expect(found(before, commit(at: 11, .actions(of: 3, from: 8, 1))) == "rejected")
        #expect(found(before, commit(at: 11, .forgotten(3))) == "rejected")
        #expect(found(before, commit(at: 11, .forgotten(8), .actions(of: 8, from: 8, 1))) == nil)
    }

    @Test func `what the log does not show is unknown`() {
        let later = commit(at: 12, .actions(of: 3, from: 8, 1))
        // Entries are missing: the action may be among them.
        #expect(found(later) == "outcomeUnknown")
        #expect(found(commit(at: 10, .actions(of: 8, from: 1, 1)), later) == "outcomeUnknown")
        // Another entry has the number: the log has lost its end.
        #expect(
            found(commit(at: 10, epoch: 5, .actions(of: 3, from: 7, 1))) == "outcomeUnknown")
        #expect(
            found(commit(at: 10, log: LogID(high: 2, low: 2), .actions(of: 3, from: 7, 1)))
                == "outcomeUnknown")
    }

    @Test func `a token is a short text`() throws {
        let text = "3:7-10@4-00000000000000010000000000000001"
        #expect(Self.token.description == text)
        #expect(DispatchToken(text) == Self.token)
        for wrong in ["", "3:7", "3:7-10@4", "3:7-x-\(Self.log)", text + "-", "7-10@4-\(Self.log)"]
        {
            #expect(DispatchToken(wrong) == nil, "\(wrong)")
        }
    }
}
