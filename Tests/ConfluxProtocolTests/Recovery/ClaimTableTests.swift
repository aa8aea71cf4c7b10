import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Whether a node's history belongs to the log (rule 2).
struct ClaimTableTests {
    private func claims(_ claims: [(epoch: UInt64, nonce: UInt64, first: UInt64)]) -> ClaimTable {
        var table = ClaimTable()
        for claim in claims {
            table.remember(
                ClaimTable.Claim(
                    epoch: Epoch(claim.epoch), nonce: Identifier(high: 9, low: claim.nonce),
                    first: SequenceNumber(claim.first)))
        }
        return table
    }

    private func mark(_ sequence: UInt64, _ epoch: UInt64, nonce: UInt64) -> HistoryMark {
        HistoryMark(
            log: Identifier(high: 7, low: 1), sequence: SequenceNumber(sequence),
            epoch: Epoch(epoch), claim: Identifier(high: 9, low: nonce))
    }

    @Test func `entries of a term of this log are agreed up to its end`() {
        let table = claims([(1, 1, 1), (2, 2, 20)])
        let last = SequenceNumber(30)
        #expect(table.agreement(with: mark(12, 1, nonce: 1), endingAt: last) == SequenceNumber(12))
        #expect(table.agreement(with: mark(25, 1, nonce: 1), endingAt: last) == SequenceNumber(19))
        #expect(table.agreement(with: mark(40, 2, nonce: 2), endingAt: last) == last)
    }

    @Test func `a history of a term that the log lost is not agreed, however short it is`() {
        // Both histories have an epoch 3. The log's began later than the one that it lost.
        let table = claims([(1, 1, 1), (2, 2, 10), (3, 3, 40)])
        for sequence in UInt64(0)...41 {
            let lost = mark(sequence, 3, nonce: 33)
            let agreed = table.agreement(with: lost, endingAt: SequenceNumber(50))
            #expect(agreed < lost.sequence || sequence == 0)
        }
        let ahead = mark(5, 7, nonce: 7)
        #expect(table.agreement(with: ahead, endingAt: SequenceNumber(50)) < ahead.sequence)
    }

    @Test func `a history older than all remembered claims is not agreed`() {
        let table = claims([(5, 5, 100), (6, 6, 120)])
        let old = mark(40, 2, nonce: 2)
        #expect(table.agreement(with: old, endingAt: SequenceNumber(130)) < old.sequence)
    }
}
