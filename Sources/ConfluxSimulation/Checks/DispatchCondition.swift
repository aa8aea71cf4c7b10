import Conflux
import ConfluxVocabulary

/// What an action with a condition is based on (rule 24).
struct DispatchCondition {
    var store: StoreName
    /// The store's life. *Use*: for transactions.
    var life = SequenceNumber.zero
    /// The version that the action names.
    var version: StoreVersion
    /// The state that the program saw, in its schema version; nil if that can't be compared.
    var seen: (digest: Digest, schemaVersion: UInt32)?
}

extension Branch {
    /// Checks an action that is in the log: nothing had changed its store since the state that its program saw.
    ///
    /// - Parameters:
    ///   - condition: Its condition.
    ///   - record: The action.
    ///   - sequence: Its number.
    ///   - first: The first number of its commit.
    /// - Throws: What had changed.
    func check(
        _ condition: DispatchCondition, of record: DispatchRecord, at sequence: SequenceNumber,
        in first: SequenceNumber
    ) throws(Violation) {
        guard let history = presentLife(condition.store) else { return }
        let last = max(
            history.entries.last?.context.sequence ?? history.life, history.words.last ?? .zero)
        try require(
            last <= condition.version.sequence, "P10",
            "\(record.text) stands at \(sequence) on condition that \(condition.store) has not changed "
                + "since \(condition.version), and \(last) had changed it")
        guard let (digest, version) = condition.seen else { return }
        try require(
            history.isRight(digest, of: version, at: SequenceNumber(first.rawValue - 1)), "P10",
            "\(record.text) stands at \(sequence), and \(condition.store) is not as its program saw it "
                + "at \(condition.version)")
    }
}
