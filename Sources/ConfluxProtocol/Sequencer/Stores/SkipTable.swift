import ConfluxVocabulary

/// Entries that have no effect (rule 38): those that the log says are skipped, and those about to
/// be.
struct SkipTable: Sendable {
    /// The most skipped entries that are known, including those about to be skipped. *At the bound*
    /// no further entry can be skipped.
    static let countMax = 1_024

    /// The entries that the log says are skipped, ascending. *Invariant*: at most `countMax`.
    private(set) var entries: [SkippedEntry] = []
    /// The entries whose `skipped` entry is not in the log yet, with those who wait for it.
    private var pending: [SkippedEntry: Askers] = [:]

    var count: Int { entries.count + pending.count }
    var isFull: Bool { count >= Self.countMax }

    func isPending(_ skip: SkippedEntry) -> Bool { pending[skip] != nil }

    /// Whether a `skipped` entry that concerns the store is on its way, so that its replicas'
    /// present states will be obsolete.
    func isPending(for name: StoreName) -> Bool {
        pending.keys.contains { $0.target.concerns(name) }
    }

    mutating func wait(_ asker: Asker, for skip: SkippedEntry) -> Bool {
        let isNew = pending[skip] == nil
        pending[skip, default: Askers()].add(asker)
        return isNew
    }

    mutating func land(_ skip: SkippedEntry) -> [Asker] {
        let askers = pending.removeValue(forKey: skip)
        note(skip)
        return askers?.all ?? []
    }

    /// The log says that an entry is skipped.
    mutating func note(_ skip: SkippedEntry) {
        guard !entries.contains(skip), entries.count < Self.countMax else { return }
        let index = entries.firstIndex { $0.sequence > skip.sequence } ?? entries.count
        entries.insert(skip, at: index)
    }

    /// Keeps only these entries, since nobody reads the others any more.
    mutating func keep(_ entries: [SkippedEntry]) { self.entries = entries }
}
