import Conflux
import ConfluxVocabulary

/// The reference for replicas of one schema version that begin with the same state: the later entries are
/// applied to it one by one.
final class Lineage {
    /// A state, its schema version, and the number at which a store had it.
    typealias Start = (bytes: Bytes, version: UInt32, sequence: SequenceNumber)

    let version: UInt32
    let start: Start
    /// The entries that were skipped when the lineage began: they have no effect.
    let skipped: Set<SequenceNumber>
    /// The `skipped` entry that ended the lineage. Replicas below it are still right if they match the
    /// lineage.
    var until: SequenceNumber?
    private let reference: any ReferenceStore
    /// The digest after the last entry of each commit that concerns the store.
    private var digests: [(sequence: SequenceNumber, digest: Digest)]
    /// The first entry of a newer version. Replicas of this version apply neither it nor later entries.
    private var end: SequenceNumber?
    /// The entries that had no effect.
    private var refused: Set<SequenceNumber> = []

    init(
        _ reference: any ReferenceStore, version: UInt32, start: Start,
        without skipped: Set<SequenceNumber>
    ) {
        self.version = version
        self.start = start
        self.skipped = skipped
        self.reference = reference
        reference.begin(with: start.bytes, version: start.version)
        digests = [(start.sequence, reference.digest)]
    }

    func apply(_ entry: StoreHistory.Entry) {
        let sequence = entry.context.sequence
        guard end == nil, sequence > start.sequence else { return }
        guard !skipped.contains(sequence) else {
            refused.insert(sequence)
            return
        }
        guard entry.schemaVersion <= version else {
            end = sequence
            return
        }
        if !reference.apply(entry.payload, entry.coding, entry.context) {
            refused.insert(sequence)
        }
    }

    /// What is wrong with the state after the last entry; nil if nothing is.
    var fault: String? { reference.fault }

    /// Notes the end of a commit; the given entry is the last one in it that concerns the store.
    func note(_ sequence: SequenceNumber) {
        guard sequence > digests[digests.count - 1].sequence, end == nil else { return }
        digests.append((sequence, reference.digest))
    }

    /// The state's digest at a number; nil if no replica of this lineage can be there.
    func digest(at position: SequenceNumber) -> Digest? {
        guard covers(position) else { return nil }
        let next = digests.partitioningIndex { $0.sequence > position }
        return next > 0 ? digests[next - 1].digest : nil
    }

    /// Whether a replica of this lineage may have reached a number.
    private func covers(_ position: SequenceNumber) -> Bool {
        end.map { position < $0 } ?? true && until.map { position < $0 } ?? true
    }

    /// Whether replicas that applied an entry refused it; nil if none applied it.
    func refused(_ sequence: SequenceNumber) -> Bool? {
        guard sequence > start.sequence, covers(sequence) else { return nil }
        return refused.contains(sequence)
    }
}
