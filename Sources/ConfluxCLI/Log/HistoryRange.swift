import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// The entries that are exported, and the states that they begin with.
struct HistoryRange: Sendable {
    /// The first entry that was asked for.
    let from: SequenceNumber
    /// The first entry of the file: it may be an earlier one, at which a store has its state.
    let first: SequenceNumber
    let last: SequenceNumber
    let starts: [ReadStart]

    /// - Parameters:
    ///   - from: The first entry; nil for the first one before which every store has a state.
    ///   - last: The last entry.
    ///   - status: The log.
    ///   - stores: What the stores of the log begin with.
    /// - Throws: ``CommandFailure`` if the log has no such entries, or a store has no state to begin with.
    init(
        from: SequenceNumber?, through last: SequenceNumber, of status: SequencerStatus,
        _ stores: [ReadStart]
    ) throws(CommandFailure) {
        // A store whose first entry the log holds needs no snapshot.
        let older = stores.filter { $0.life < status.floor }
        let earliest = older.map { max($0.known.next, status.floor) }.max() ?? status.floor
        self.from = from ?? earliest
        self.last = last
        guard self.from >= status.floor else {
            throw CommandFailure(
                .notFound, code: "discarded",
                "The log begins at entry \(status.floor): earlier ones were discarded. Give a later --from."
            )
        }
        guard self.from <= max(last, status.last) else {
            throw CommandFailure(
                .notFound, code: "noEntry",
                "There is no entry \(self.from): the log holds \(status.floor) to \(status.last).")
        }
        var first = self.from
        var starts: [ReadStart] = []
        for store in stores where store.life < self.from {
            if store.known < self.from {
                starts.append(store)
                first = min(first, max(store.known.next, status.floor))
            } else if store.life >= status.floor {
                first = min(first, store.life)
            } else {
                throw CommandFailure(
                    .notFound, code: "noSnapshot",
                    """
                    The log has no snapshot of \(store.store) before entry \(self.from): its only one \
                    includes entry \(store.known). Give --from \(earliest) or later, or leave the store out \
                    with --target.
                    """)
            }
        }
        self.first = first
        self.starts = starts
    }
}
