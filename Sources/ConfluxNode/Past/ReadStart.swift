import ConfluxProtocol
import ConfluxVocabulary

/// What the sequencer offers to somebody who begins with a store's state.
package struct ReadStart: Sendable {
    package let store: StoreName
    package let life: SequenceNumber
    /// The number from which the log may be read for the store.
    package let floor: SequenceNumber
    package let offer: SnapshotOffer
    package let aside: SnapshotReference?
    package let skipped: [SequenceNumber]
    /// The schema version in force from the snapshot on.
    package let version: VersionInForce

    /// What a reader needs that begins earlier.
    package let earlier: EarlierStart?

    /// The number of the snapshot.
    var base: SequenceNumber { offer.sequence }

    /// With the snapshot and what is kept aside, the store has everything up to this number.
    package var through: SequenceNumber {
        max(base, aside?.sequence ?? .zero, SequenceNumber(floor.rawValue - 1))
    }

    /// The number behind which all entries that concern the store are in the log: that of its snapshot, unless others are
    /// kept aside.
    package var known: SequenceNumber { max(base, aside?.sequence ?? .zero) }
}

extension ReadStart {
    /// Loads what it offers.
    ///
    /// - Parameter bytes: Loads a snapshot, or what is kept aside.
    /// - Returns: What a store begins with.
    /// - Throws: What `bytes` throws.
    package func loaded<Failure: Error>(
        _ bytes: (SnapshotReference) async throws(Failure) -> Bytes
    ) async throws(Failure) -> HistoryStart {
        let snapshot: Snapshot
        switch offer {
        case .whole(let whole): snapshot = whole
        case .saved(let reference):
            snapshot = Snapshot(of: reference, try await bytes(reference))
        }
        var aside: Bytes?
        if let reference = self.aside { aside = try await bytes(reference) }
        return HistoryStart(
            store: store, life: life, snapshot: snapshot, version: version, aside: aside,
            skipped: skipped, through: through)
    }
}

extension Snapshot {
    /// Makes a snapshot of what a log keeps.
    init(of reference: SnapshotReference, _ bytes: Bytes) {
        self.init(
            sequence: reference.sequence, schemaVersion: reference.schemaVersion,
            state: EncodedState(coding: .json, bytes: bytes))
    }
}

extension NodeCore {
    /// Asks for what a store begins with.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - patience: How long to wait.
    /// - Returns: The start; nil if there is no such store any more.
    /// - Throws: ``NodeError`` if there is no answer.
    package func start(
        of store: StoreName, patience: Duration
    ) async throws(NodeError) -> ReadStart? {
        let answer: Answer
        do throws(NodeError) {
            answer = try await ask(.start(store), patience: patience)
        } catch {
            if error.questionFailure == .notHosted { return nil }
            throw error
        }
        guard
            case .start(
                store,
                .opened(
                    let life, let version, _, let floor, let snapshot?, let aside, let skipped,
                    let migrated)) = answer.body
        else { throw .unfit }
        return ReadStart(
            store: store, life: life, floor: floor, offer: snapshot, aside: aside,
            skipped: skipped, version: VersionInForce(version, migrated: migrated),
            earlier: answer.earlier)
    }
}

extension NodeError {
    /// The error for an answer that does not fit the question.
    static let unfit = NodeError(
        code: .unanswered,
        message: """
            The sequencer's answer does not match the question. Run the same version of Conflux on both sides.
            """)
}
