import ConfluxProtocol
import ConfluxVocabulary

/// A state of a store that the log keeps as it is. It needs none of the state's code.
package struct KeptState: Sendable {
    /// Why the log has it.
    package enum Kind: String, Sendable {
        /// It is a confirmed snapshot.
        case snapshot
        /// The store was created with it, and has no snapshot yet.
        case creation
    }

    package let store: StoreName
    /// The log.
    package let log: LogID
    package let kind: Kind
    /// The number up to which it has the store's entries. No later one is applied.
    package let sequence: SequenceNumber
    /// The schema version of its form.
    package let version: UInt32
    /// The state in canonical JSON.
    package let json: [UInt8]
}

extension PastReader {
    /// The newest state of a store that the log keeps.
    ///
    /// - Parameters:
    ///   - store: The store, of any state.
    ///   - mark: The number above which it must not be; nil for the newest of all.
    ///   - limit: How long it may take; nil for no limit.
    /// - Returns: The state.
    /// - Throws: ``PastError``.
    package func kept(
        of store: StoreName, at mark: SequenceNumber? = nil, within limit: Duration? = nil
    ) async throws(PastError) -> KeptState {
        try await withReader(within: limit) { (reader, _) throws(PastError) in
            let range = try await PastRange(
                of: store, on: reader, patience: settings.connectTimeout)
            if let mark, mark > range.newest { throw .aboveNewest(mark, range.newest) }
            let offers = range.offers
            guard let offer = offers.last(where: { mark == nil || $0.sequence <= mark ?? .zero })
            else { throw .notKept(mark ?? .zero, offers[0].sequence, of: store) }
            switch offer {
            case .whole(let snapshot):
                guard snapshot.state.coding == .json else { throw .unreadable(store) }
                return KeptState(
                    store: store, log: range.log, kind: .creation, sequence: snapshot.sequence,
                    version: snapshot.schemaVersion,
                    json: try checked(Array(snapshot.state.bytes), store))
            case .saved(let reference):
                let bytes = try await reader.bytes(of: reference, store, range.life)
                return KeptState(
                    store: store, log: range.log, kind: .snapshot, sequence: reference.sequence,
                    version: reference.schemaVersion, json: try checked(Array(bytes), store))
            }
        }
    }
}

/// What a node has uploaded, if it is one value in JSON. The sequencer does not look into it.
private func checked(_ json: [UInt8], _ store: StoreName) throws(PastError) -> [UInt8] {
    guard (try? JSONValue(json: json)) != nil else { throw .unreadable(store) }
    return json
}

extension SnapshotOffer {
    /// The number of the state.
    var sequence: SequenceNumber {
        switch self {
        case .whole(let snapshot): snapshot.sequence
        case .saved(let reference): reference.sequence
        }
    }
}

extension NodeCore {
    /// Loads a snapshot, or what is kept aside.
    ///
    /// - Throws: ``PastError`` if the log no longer has it.
    func bytes(
        of reference: SnapshotReference, _ store: StoreName, _ life: SequenceNumber
    ) async throws(PastError) -> Bytes {
        let place = SnapshotPlace(store: store, life: life, sequence: reference.sequence)
        guard let bytes = await load(place, reference) else {
            throw .snapshotGone(store, reference.sequence)
        }
        return bytes
    }
}
