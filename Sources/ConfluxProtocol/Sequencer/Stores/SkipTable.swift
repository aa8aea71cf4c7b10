import ConfluxVocabulary

/// Entries that have no effect (rule 38): those that the log says, and those that it will.
struct SkipTable: Sendable {
    /// How many skipped entries are known, those to come among them. *At the bound* no further one is
    /// skipped.
    static let countMax = 1_024

    /// Those of which the log says so, ascending. *Invariant*: at most `countMax`.
    private(set) var entries: [SkippedEntry] = []
    /// Those whose `skipped` entry is not in the log yet, and who waits for it.
    private var pending: [SkippedEntry: Askers] = [:]

    var count: Int { entries.count + pending.count }
    var isFull: Bool { count >= Self.countMax }

    func isPending(_ skip: SkippedEntry) -> Bool { pending[skip] != nil }

    /// Whether an entry is on its way by which what replicas of a store have now counts no more.
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

    /// The log says so.
    mutating func note(_ skip: SkippedEntry) {
        guard !entries.contains(skip), entries.count < Self.countMax else { return }
        let index = entries.firstIndex { $0.sequence > skip.sequence } ?? entries.count
        entries.insert(skip, at: index)
    }

    /// The others are read by nobody any more.
    mutating func keep(_ entries: [SkippedEntry]) { self.entries = entries }
}
