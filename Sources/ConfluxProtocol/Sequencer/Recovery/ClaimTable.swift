import ConfluxVocabulary

/// The claims of a log. Histories are compared by them (rule 2).
struct ClaimTable: Sendable, Equatable {
    /// One claim of the log's history.
    struct Claim: Sendable, Equatable {
        var epoch: Epoch
        var nonce: Nonce
        /// The number of the claim's entry, the first of its term.
        var first: SequenceNumber
    }

    /// How many past claims are remembered. A node whose history ends before them reloads.
    static let countMax = 4_096

    /// Ascending. *Invariant*: at most `countMax`.
    private(set) var claims: [Claim] = []

    mutating func remember(_ claim: Claim) {
        claims.append(claim)
        if claims.count > Self.countMax { claims.removeFirst() }
    }

    func checkInvariants() throws(BrokenInvariant) {
        try hold(claims.count <= Self.countMax, "\(claims.count) claims")
        for (former, claim) in zip(claims, claims.dropFirst()) {
            try hold(
                former.epoch < claim.epoch && former.first < claim.first, "\(claim) after \(former)"
            )
        }
    }

    /// The highest number up to which a history agrees with the log that ends at `last`.
    ///
    /// A log that lost its tail gives the lost numbers again in a later epoch. A log that lost its
    /// end because a backup was restored may even give the same epoch again, so the claim's nonce
    /// is compared, too. If the mark's own claim is not among the claims, it is unknown where the
    /// two histories diverge: that may be below claims of both that have the same epoch. So the
    /// answer is then below the mark, and the replicas begin anew, whatever the exact number is.
    func agreement(with mark: HistoryMark, endingAt last: SequenceNumber) -> SequenceNumber {
        let below = SequenceNumber(mark.sequence.rawValue - min(mark.sequence.rawValue, 1))
        guard let index = claims.lastIndex(where: { $0.epoch <= mark.epoch }) else {
            // The mark is older than every remembered claim, or of no term of this log. Whether
            // its history is part of this one is unknown.
            return .zero
        }
        let claim = claims[index]
        let end =
            index + 1 < claims.count
            ? SequenceNumber(claims[index + 1].first.rawValue - 1) : last
        guard claim.epoch == mark.epoch,
            mark.claim == .none || claim.nonce == mark.claim
        else { return min(SequenceNumber(claim.first.rawValue - 1), below) }
        return min(end, mark.sequence)
    }
}
