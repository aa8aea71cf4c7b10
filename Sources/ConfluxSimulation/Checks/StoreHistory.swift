import Conflux
import ConfluxProtocol

/// What a store is for replicas of one schema version that begin with one state: the entries behind
/// it, applied one after the other.
final class Lineage {
    let version: UInt32
    /// What it began with: a state, its version, and its number.
    let start: (bytes: Bytes, version: UInt32, sequence: SequenceNumber)
    private let reference: any ReferenceStore
    /// The digest behind the last entry of each commit that concerns the store.
    private(set) var digests: [(sequence: SequenceNumber, digest: Digest)]
    /// The first entry of a newer version: no replica of this one applies it, or any behind it.
    private(set) var end: SequenceNumber?

    init(
        _ reference: any ReferenceStore, version: UInt32,
        start: (bytes: Bytes, version: UInt32, sequence: SequenceNumber)
    ) {
        self.version = version
        self.start = start
        self.reference = reference
        reference.begin(with: start.bytes, version: start.version)
        digests = [(start.sequence, reference.digest)]
    }

    /// - Returns: Whether it had an effect.
    func apply(_ entry: StoreHistory.Entry) -> Bool {
        guard end == nil, entry.context.sequence > start.sequence else { return true }
        guard entry.schemaVersion <= version else {
            end = entry.context.sequence
            return true
        }
        return reference.apply(entry.payload, entry.coding, entry.context)
    }

    /// The commit with that entry as the last one of the store's is over.
    func note(_ sequence: SequenceNumber) {
        guard sequence > digests[digests.count - 1].sequence, end == nil else { return }
        digests.append((sequence, reference.digest))
    }

    /// What it is at a number; nil where it is not there yet, or no more.
    func digest(at position: SequenceNumber) -> Digest? {
        if let end, position >= end { return nil }
        var low = 0
        var high = digests.count
        while low < high {
            let middle = (low + high) / 2
            if digests[middle].sequence <= position { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? digests[low - 1].digest : nil
    }
}

/// One life of a store, as the log tells it.
final class StoreHistory {
    /// An entry that concerns it.
    struct Entry {
        var payload: Bytes
        var coding: PayloadCoding
        var schemaVersion: UInt32
        var context: ActionContext
    }

    let name: StoreName
    let life: SequenceNumber
    let initial: EncodedState
    let createdVersion: UInt32
    let seed: UInt64
    /// The number of its `dropped` entry.
    var end: SequenceNumber?
    private(set) var version: UInt32
    /// The snapshot that replicas of `version` are migrated from; nil where it began with that.
    private(set) var migratedFrom: SequenceNumber?
    var isFrozen = false
    /// The last entry that concerns it in each commit.
    private(set) var changes: [SequenceNumber]
    /// By what its replicas are right.
    private(set) var lineages: [Lineage] = []
    /// Those that an entry ended which was skipped: right for who has not come to that word.
    private(set) var former: [(lineage: Lineage, until: SequenceNumber)] = []
    /// What concerns it, ascending.
    private(set) var entries: [Entry] = []
    /// What the log says of it beside that, and who begins with a snapshot must hear.
    private(set) var words: [SequenceNumber] = []
    /// The ends of commits, as indexes into `entries`.
    private var ends: [Int] = []
    private var skipped: Set<SequenceNumber> = []
    private let state: SimulatedState
    /// The bytes of what concerns it, and of that up to its newest digest point.
    private(set) var byteCount = 0
    var pointBytes = 0 { didSet { formerPointBytes = oldValue } }
    private(set) var formerPointBytes = 0

    init?(
        _ name: StoreName, life: SequenceNumber, version: UInt32, initial: EncodedState,
        seed: UInt64, state: SimulatedState
    ) {
        guard let reference = state.reference(name, version: version) else { return nil }
        self.name = name
        self.life = life
        self.initial = initial
        self.version = version
        createdVersion = version
        self.seed = seed
        self.state = state
        changes = [life]
        lineages = [
            Lineage(reference, version: version, start: (initial.bytes, version, life))
        ]
    }

    /// - Returns: Whether it had an effect.
    func apply(_ entry: Entry) -> Bool {
        entries.append(entry)
        byteCount += entry.payload.count + 2
        guard !skipped.contains(entry.context.sequence) else { return false }
        var hadEffect = true
        for lineage in lineages { hadEffect = lineage.apply(entry) && hadEffect }
        return hadEffect
    }

    func endCommit(at sequence: SequenceNumber) {
        changes.append(sequence)
        ends.append(entries.count)
        for lineage in lineages { lineage.note(sequence) }
    }

    func note(word sequence: SequenceNumber) { words.append(sequence) }

    /// From a number on replicas may also be those that began with another state: a newer version's,
    /// or one that spoilt replicas had agreed upon.
    ///
    /// - Returns: The entries that had no effect there.
    @discardableResult
    func begin(
        _ bytes: Bytes, of former: UInt32, at base: SequenceNumber, as version: UInt32
    ) -> [SequenceNumber] {
        guard let reference = state.reference(name, version: version) else { return [] }
        let lineage = Lineage(reference, version: version, start: (bytes, former, base))
        defer { lineages.append(lineage) }
        return replay(lineage)
    }

    func upgrade(to version: UInt32, from base: SequenceNumber) {
        self.version = version
        migratedFrom = base
    }

    /// An entry has no effect, for all who have not applied it.
    func skip(_ sequence: SequenceNumber, at word: SequenceNumber) {
        guard skipped.insert(sequence).inserted else { return }
        former += lineages.map { ($0, word) }
        lineages = lineages.compactMap { old in
            guard let reference = state.reference(name, version: old.version) else { return nil }
            let lineage = Lineage(reference, version: old.version, start: old.start)
            replay(lineage)
            return lineage
        }
    }

    @discardableResult
    private func replay(_ lineage: Lineage) -> [SequenceNumber] {
        var refused: [SequenceNumber] = []
        var next = 0
        for (end, change) in zip(ends, changes.dropFirst()) {
            for entry in entries[next..<end] where !skipped.contains(entry.context.sequence) {
                if !lineage.apply(entry) { refused.append(entry.context.sequence) }
            }
            lineage.note(change)
            next = end
        }
        for entry in entries[next...] where !skipped.contains(entry.context.sequence) {
            if !lineage.apply(entry) { refused.append(entry.context.sequence) }
        }
        return refused
    }

    /// Whether a replica of this version is right with this state at this position.
    func isRight(_ digest: Digest, of version: UInt32, at position: SequenceNumber) -> Bool {
        lineages.contains { $0.version == version && $0.digest(at: position) == digest }
            || former.contains {
                $0.lineage.version == version && position < $0.until
                    && $0.lineage.digest(at: position) == digest
            }
    }

    /// The same for one that stopped in the middle of a commit.
    func isRight(_ digest: Digest, of version: UInt32, inside position: SequenceNumber) -> Bool {
        (lineages + former.map(\.lineage)).contains { lineage in
            guard lineage.version == version,
                let reference = state.reference(name, version: version)
            else { return false }
            let copy = Lineage(reference, version: version, start: lineage.start)
            for entry in entries where entry.context.sequence <= position { _ = copy.apply(entry) }
            copy.note(position)
            return copy.digest(at: position) == digest
        }
    }

    /// Whether a snapshot may be what openers begin with (rule 17).
    func takes(version: UInt32, at sequence: SequenceNumber) -> Bool {
        version == self.version || (version < self.version && sequence <= migratedFrom ?? .zero)
    }

    /// The first entry, or word, behind a number that concerns it.
    func firstNeed(behind sequence: SequenceNumber) -> SequenceNumber? {
        let entry = entries.first { $0.context.sequence > sequence }?.context.sequence
        let word = words.first { $0 > sequence }
        return [entry, word].compactMap { $0 }.min()
    }

    /// The bytes of what concerns it behind a number.
    func byteCount(behind sequence: SequenceNumber) -> Int {
        entries.reversed().prefix { $0.context.sequence > sequence }
            .reduce(0) { $0 + $1.payload.count + 2 }
    }

    /// The last entry up to a number that concerns it.
    func lastChange(through sequence: SequenceNumber) -> SequenceNumber? {
        changes.last { $0 <= sequence }
    }
}
