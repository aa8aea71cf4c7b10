import ConfluxVocabulary

/// Conditions of actions (rule 24). An entry with a condition is admitted only if no entry behind the version that the
/// condition names concerns its store, those that are not in the log yet included.
///
/// Every entry for a store counts, even one that is refused. So a condition may fail though the state is the same, but
/// never hold though it has changed.
///
/// The conditions of an atomic batch are judged before its entries: see `SequencerMachine.conflict(of:)`.
struct ConditionJudge {
    /// The entries of the batch that were admitted so far.
    private var changes: [Target: SequenceNumber] = [:]
    private var next: SequenceNumber

    /// Begins with a batch whose turn it is.
    ///
    /// - Parameter last: The last number that was given to an entry.
    init(behind last: SequenceNumber) { next = last.next }

    /// Judges the condition of the next entry that nothing else speaks against.
    ///
    /// - Parameters:
    ///   - row: Its row.
    ///   - machine: The sequencer, which does not change. It is passed in place, so that no call copies it.
    /// - Returns: Why neither the entry nor a later one of its row can be admitted; nil if the entry can.
    mutating func admit(
        _ row: BatchTarget, in machine: inout SequencerMachine
    ) -> SequencerMachine.Fault? {
        if case .store(let name) = row.target {
            let own = max(changes[row.target] ?? .zero, changes[.state(name.state)] ?? .zero)
            if let fault = machine.conflict(of: row, behind: own) { return fault }
        }
        if case .event(_, let states) = row.target {
            for state in states { changes[.state(state)] = next }
        } else {
            changes[row.target] = next
        }
        next = next.next
        return nil
    }
}

extension SequencerMachine {
    /// The last entry that concerns a store, whether or not it is in the log yet. If a store is about to begin, or to be
    /// frozen, for example, it is the last entry of all: at least as high.
    fileprivate mutating func lastAdmittedChange(of name: StoreName) -> SequenceNumber {
        let isAboutToChange =
            directory.beginnings[name] != nil || directory.life(of: name)?.work.word != nil
            || directory.skips.isPending(for: name)
        return isAboutToChange
            ? pipeline.lastAdmitted
            : max(directory.stamp(of: name), pipeline.lastChange(of: name))
    }

    /// Whether the log has lost an entry that it once had: it has no such entry, or another one, under this number.
    func hasLost(_ version: StoreVersion) -> Bool {
        let mark = HistoryMark(
            log: term.log, sequence: version.sequence,
            epoch: version.epoch == .none ? term.epoch : version.epoch, claim: .none)
        return term.agreement(with: mark) < version.sequence
    }

    /// Judges the condition of a row.
    ///
    /// - Parameters:
    ///   - row: The row. In an atomic batch it need not have entries: its condition is then on a store that a transaction
    ///     has read and does not change.
    ///   - own: The last entry of the same batch that concerns the store.
    /// - Returns: Why it does not hold; nil if it does, or there is none.
    mutating func conflict(of row: BatchTarget, behind own: SequenceNumber = .zero) -> Fault? {
        guard let condition = row.unchangedSince else { return nil }
        guard case .store(let name) = row.target else { return fault(ofActionUnder: condition) }
        let version = max(lastAdmittedChange(of: name), own)
        let text: String
        if condition.sequence > term.last {
            text = "The log has no entry \(condition.sequence) yet"
        } else if hasLost(condition) {
            text = "The log has lost entry \(condition.sequence)"
        } else if version > condition.sequence {
            text = "\(name) has changed since \(condition.sequence), and is at \(version) now"
        } else {
            return nil
        }
        return Fault(
            code: .conflict, message: "\(text). Read the store again, and then decide anew",
            version: StoreVersion(sequence: version, epoch: term.epoch))
    }
}
