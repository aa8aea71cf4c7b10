import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// A transaction that a simulated process sent.
final class TransactionRecord {
    /// What its function saw of each store.
    let seen: [DispatchCondition]
    /// Its actions, in order.
    var records: [DispatchRecord] = []

    init(_ seen: [DispatchCondition]) { self.seen = seen }
}

extension Branch {
    /// Checks the first action of a transaction that is in the log: no store had changed since the function saw it, and
    /// the other actions follow.
    ///
    /// - Parameters:
    ///   - transaction: The transaction.
    ///   - record: The action.
    ///   - sequence: Its number.
    ///   - first: The first number of its commit.
    ///   - batch: Its batch.
    /// - Throws: What is wrong.
    func check(
        _ transaction: TransactionRecord, from record: DispatchRecord, at sequence: SequenceNumber,
        in first: SequenceNumber, _ batch: Batch
    ) throws(Violation) {
        guard record === transaction.records.first else { return }
        for condition in transaction.seen {
            try check(condition, of: record, at: sequence, in: first)
        }
        try require(
            batch.isAtomic && Int(batch.count) == transaction.records.count, "P11",
            "\(record.text) stands at \(sequence) without the \(transaction.records.count - 1) other actions of "
                + "its transaction")
    }

    /// Whether several stores were as a function saw them, all at one number.
    func hasCut(_ seen: [DispatchCondition]) -> Bool {
        let number = seen.map(\.version.sequence).max() ?? .zero
        return number <= last
            && seen.allSatisfy { condition in
                guard let (digest, version) = condition.seen else { return true }
                return history(of: condition.store, life: condition.life)?
                    .isRight(digest, of: version, at: number) == true
            }
    }
}
