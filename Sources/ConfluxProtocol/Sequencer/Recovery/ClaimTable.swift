import ConfluxVocabulary

/// The claims of a log, by which histories are compared: rule 2.
struct ClaimTable: Sendable, Equatable {
    /// One claim of the log's history.
    struct Claim: Sendable, Equatable {
        var epoch: Epoch
        var nonce: Nonce
        /// The number of the claim's entry: the tenure's first.
        var first: SequenceNumber
    }

    /// How many claims of the past are remembered. A node whose history ends before them reloads.
    static let countMax = 4_096

    /// Ascending. *Invariant*: at most `countMax`.
    private(set) var claims: [Claim] = []

    mutating func remember(_ claim: Claim) {
        claims.append(claim)
        if claims.count > Self.countMax { claims.removeFirst() }
    }

    /// The highest number up to which a history is that of the log which ends at `last`.
    ///
    /// A log that lost its tail gives the lost numbers again in a later epoch; one that lost its
    /// end to a restored backup may even give the same epoch again, so the claim's nonce counts.
    /// Where the mark's own claim is not among the claims, nobody knows where the two histories
    /// part: it may be below claims of both that have the same epoch. So the answer is below the
    /// mark then, and the replicas begin anew, whatever number it is.
    func agreement(with mark: HistoryMark, endingAt last: SequenceNumber) -> SequenceNumber {
        let below = SequenceNumber(mark.sequence.rawValue - min(mark.sequence.rawValue, 1))
        guard let index = claims.lastIndex(where: { $0.epoch <= mark.epoch }) else {
            // Older than what is remembered of claims, or of no tenure of this log: whether that
            // history is a part of this one can't be told.
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
