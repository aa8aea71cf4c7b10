import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// One life of a store, as the log defines it.
final class StoreHistory {
    /// An entry that concerns the store.
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
    /// The snapshot from which replicas of `version` are migrated; nil if the store began with that version.
    private(set) var migratedFrom: SequenceNumber?
    var isFrozen = false
    /// The last entry that concerns the store in each commit.
    private(set) var changes: [SequenceNumber]
    /// The lineages that define which replicas are right.
    private var lineages: [Lineage] = []
    /// The entries that concern the store, ascending.
    private(set) var entries: [Entry] = []
    /// The log's other records about the store. A replica that begins with a snapshot needs them, too.
    private(set) var words: [SequenceNumber] = []
    /// The ends of commits, as indexes into `entries`.
    private var ends: [Int] = []
    private var skipped: Set<SequenceNumber> = []
    private let state: SimulatedState
    /// The bytes of the entries that concern the store, and of those up to its newest digest point.
    private(set) var byteCount = 0
    private(set) var pointBytes = 0
    private(set) var formerPointBytes = 0
    private var points: [SequenceNumber] = []

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
            Lineage(
                reference, version: version, start: (initial.bytes, version, life), without: [])
        ]
    }

    /// The lineages that have not ended.
    private var present: [Lineage] { lineages.filter { $0.until == nil } }

    /// Applies an entry.
    ///
    /// - Throws: What is wrong with the state after it, by the program's own invariant.
    func apply(_ entry: Entry) throws(Violation) {
        entries.append(entry)
        byteCount += entry.payload.count + 2
        for lineage in lineages where lineage.until == nil {
            lineage.apply(entry)
            guard let fault = lineage.fault else { continue }
            throw Violation("program", "\(name) at \(entry.context.sequence), \(fault)")
        }
    }

    func endCommit(at sequence: SequenceNumber) {
        changes.append(sequence)
        ends.append(entries.count)
        for lineage in lineages where lineage.until == nil { lineage.note(sequence) }
    }

    func note(word sequence: SequenceNumber) { words.append(sequence) }

    func note(point sequence: SequenceNumber) {
        points.append(sequence)
        formerPointBytes = pointBytes
        pointBytes = byteCount
    }

    /// Adds a lineage: from a number on, replicas may also be those that began with another state. That is a
    /// newer version's state, or one that corrupted replicas agreed on.
    func begin(
        _ bytes: Bytes, of former: UInt32, at base: SequenceNumber, as version: UInt32
    ) {
        begin(version: version, start: (bytes, former, base))
    }

    private func begin(version: UInt32, start: Lineage.Start) {
        guard let reference = state.reference(name, version: version) else { return }
        let lineage = Lineage(reference, version: version, start: start, without: skipped)
        var next = 0
        for (end, change) in zip(ends, changes.dropFirst()) {
            for entry in entries[next..<end] { lineage.apply(entry) }
            lineage.note(change)
            next = end
        }
        for entry in entries[next...] { lineage.apply(entry) }
        lineages.append(lineage)
    }

    /// The word is in the log: replicas of older versions apply nothing from there on.
    func upgrade(to version: UInt32, from base: SequenceNumber, at word: SequenceNumber) {
        for lineage in present where lineage.version < version { lineage.until = word }
        self.version = version
        migratedFrom = base
    }

    /// Skips an entry: it has no effect on replicas that have not applied it. Replicas that have not reached
    /// the skipping record are right as before.
    func skip(_ sequence: SequenceNumber, at word: SequenceNumber) {
        guard skipped.insert(sequence).inserted else { return }
        for lineage in present {
            lineage.until = word
            begin(version: lineage.version, start: lineage.start)
        }
    }

    /// Whether a replica of this version with this state is right at this position.
    func isRight(_ digest: Digest, of version: UInt32, at position: SequenceNumber) -> Bool {
        lineages.contains { $0.version == version && $0.digest(at: position) == digest }
    }

    /// The same for a replica that stopped in the middle of a commit.
    func isRight(_ digest: Digest, of version: UInt32, inside position: SequenceNumber) -> Bool {
        lineages.contains { lineage in
            guard lineage.version == version, lineage.digest(at: position) != nil,
                let reference = state.reference(name, version: version)
            else { return false }
            let copy = Lineage(
                reference, version: version, start: lineage.start, without: lineage.skipped)
            for entry in entries where entry.context.sequence <= position { copy.apply(entry) }
            copy.note(position)
            return copy.digest(at: position) == digest
        }
    }

    /// Whether an entry was refused, or not refused, by some replica.
    func mayHave(_ sequence: SequenceNumber, refused: Bool) -> Bool {
        lineages.contains { $0.refused(sequence) == refused }
    }

    /// Whether replicas may begin with a snapshot of this version and number (rule 17).
    func takes(version: UInt32, at sequence: SequenceNumber) -> Bool {
        version == self.version || (version < self.version && sequence <= migratedFrom ?? .zero)
    }

    /// The first entry or record after a number that concerns the store.
    func firstNeed(behind sequence: SequenceNumber) -> SequenceNumber? {
        let entry = entries.first { $0.context.sequence > sequence }?.context.sequence
        let word = words.first { $0 > sequence }
        return [entry, word].compactMap { $0 }.min()
    }

    /// The first entry, record or digest point that an opener needs and that is not kept aside.
    ///
    /// - Parameters:
    ///   - base: The number of the snapshot with which it begins. Only points behind the first entry after it matter.
    ///   - kept: Everything up to this number is kept aside.
    /// - Returns: Its number; nil if there is none.
    func firstNeed(after base: SequenceNumber, aside kept: SequenceNumber) -> SequenceNumber? {
        guard let first = firstNeed(behind: base) else { return nil }
        let kept = max(base, kept)
        let point = points.first { $0 > max(first, kept) }
        return [firstNeed(behind: kept), point].compactMap { $0 }.min()
    }

    /// The bytes of the entries after a number that concern the store.
    func byteCount(behind sequence: SequenceNumber) -> Int {
        entries.reversed().prefix { $0.context.sequence > sequence }
            .reduce(0) { $0 + $1.payload.count + 2 }
    }

    /// The last entry up to a number that concerns the store.
    func lastChange(through sequence: SequenceNumber) -> SequenceNumber? {
        changes.last { $0 <= sequence }
    }
}
