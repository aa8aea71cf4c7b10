import ConfluxVocabulary

/// Entries that have no effect (rule 38): those that the log says are skipped, and those about to
/// be.
struct SkipTable: Sendable {
    /// The most skipped entries that are known, including those about to be skipped, which the keys
    /// share. *At the bound* no further entry can be skipped.
    static let countMax = 1_024

    /// The entries that the log says are skipped, ascending. *Invariant*: at most `countMax`.
    private(set) var entries: [SkippedEntry] = []
    /// The entries whose `skipped` entry is not in the log yet, with those who wait for it.
    private var pending: [SkippedEntry: Askers] = [:]
    /// The names of the keys that had them skipped, as far as keys did.
    private var owners: [SkippedEntry: Name] = [:]
    /// *Invariant*: counts everything in `entries` and `pending` once.
    private var shares = Shares<Name>()

    var count: Int { shares.total }

    /// Whether a key may have another entry skipped.
    func hasRoom(for owner: Name?) -> Bool { shares.hasRoom(for: owner, of: Self.countMax) }

    func owner(of skip: SkippedEntry) -> Name? { owners[skip] }

    func isPending(_ skip: SkippedEntry) -> Bool { pending[skip] != nil }

    /// Whether a `skipped` entry that concerns the store is on its way, so that its replicas'
    /// present states will be obsolete.
    func isPending(for name: StoreName) -> Bool {
        pending.keys.contains { $0.target.concerns(name) }
    }

    mutating func wait(
        _ asker: Asker, of sharer: Sharer, for skip: SkippedEntry, by owner: Name?
    ) -> Bool {
        let isNew = pending[skip] == nil
        pending[skip, default: Askers()].add(asker, of: sharer)
        if isNew { count(skip, of: owner) }
        return isNew
    }

    mutating func land(_ skip: SkippedEntry) -> [Asker] {
        guard let askers = pending.removeValue(forKey: skip) else { return [] }
        let owner = owners[skip]
        uncount(skip)
        note(skip, by: owner)
        return askers.all
    }

    /// The log says that an entry is skipped.
    mutating func note(_ skip: SkippedEntry, by owner: Name?) {
        guard !entries.contains(skip), entries.count < Self.countMax else { return }
        let index = entries.firstIndex { $0.sequence > skip.sequence } ?? entries.count
        entries.insert(skip, at: index)
        count(skip, of: owner)
    }

    /// Keeps only some of the entries, since nobody reads the others any more.
    mutating func keep(_ isKept: (SkippedEntry) -> Bool) {
        for skip in entries where !isKept(skip) { uncount(skip) }
        entries.removeAll { !isKept($0) }
    }

    private mutating func count(_ skip: SkippedEntry, of owner: Name?) {
        owners[skip] = owner
        shares.add(of: owner)
    }

    private mutating func uncount(_ skip: SkippedEntry) {
        shares.remove(of: owners.removeValue(forKey: skip))
    }
}

extension SkipTable: Equatable {
    /// Compares only what the log says.
    static func == (left: Self, right: Self) -> Bool {
        left.entries == right.entries
            && left.entries.allSatisfy { left.owners[$0] == right.owners[$0] }
    }
}

/// Skips of the directory's stores.
extension StoreDirectory {
    /// An entry is to have no effect. The asker waits for the `skipped` entry.
    ///
    /// - Returns: Whether nobody asked for it before.
    mutating func skip(_ skip: SkippedEntry, for asker: Asker, as principal: Principal) -> Bool {
        skips.wait(
            asker, of: principal.sharer(on: asker.connection), for: skip, by: principal.name)
    }

    /// A `skipped` entry is in the log.
    ///
    /// - Parameters:
    ///   - skip: What it says.
    ///   - sequence: Its number.
    /// - Returns: Who waits for it.
    mutating func skipped(_ skip: SkippedEntry, at sequence: SequenceNumber) -> [Asker] {
        pass(skip.target, at: sequence)
        return skips.land(skip)
    }

    /// Inserts a skipped entry from a checkpoint.
    mutating func restore(_ skip: SkippedEntry, by owner: Name?) { skips.note(skip, by: owner) }

    /// Forgets skipped entries below the floor, since nobody reads those any more. Those that are
    /// kept aside are not forgotten.
    mutating func forgetSkips(below floor: SequenceNumber) {
        guard skips.entries.first.map({ $0.sequence < floor }) == true else { return }
        var kept = skips
        kept.keep { $0.sequence >= floor || isKeptAside($0.sequence, $0.target) }
        skips = kept
    }
}
