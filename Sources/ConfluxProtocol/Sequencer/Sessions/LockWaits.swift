import ConfluxVocabulary

/// How long the batches of a session have waited for locked stores.
///
/// A wait goes on when the lock passes to another claim, and however rarely the node sends the batch again. It ends once a
/// batch for the store is taken; or if no batch has come for as long as one may wait, and then another one does.
struct LockWaits: Sendable, Equatable {
    private struct Wait: Sendable, Equatable {
        var store: StoreName
        var since: Duration
        /// The batch that was last held up, and when.
        var batch: UInt64
        var seen: Duration
    }

    /// The last stores, and all of one batch.
    private var waits: [Wait] = []
    private static let countMax = 256

    /// A batch waits for a locked store.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - batch: The batch's first counter.
    ///   - patience: How long one may wait.
    ///   - now: The time.
    /// - Returns: For how long batches have waited for the store.
    mutating func wait(
        for store: StoreName, _ batch: UInt64, patience: Duration, at now: Duration
    ) -> Duration {
        var wait = Wait(store: store, since: now, batch: batch, seen: now)
        if let index = waits.firstIndex(where: { $0.store == store }) {
            let former = waits.remove(at: index)
            if former.batch == batch || now - former.seen < patience { wait.since = former.since }
        }
        waits = waits.suffix(Self.countMax - 1) + [wait]
        return now - wait.since
    }

    /// Entries for some stores are taken.
    mutating func end(for isTaken: (StoreName) -> Bool) {
        waits.removeAll { isTaken($0.store) }
    }
}
