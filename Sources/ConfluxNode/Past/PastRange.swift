import ConfluxProtocol
import ConfluxVocabulary

/// What a log keeps of a store.
struct PastRange: Sendable {
    /// A state with which a store can begin.
    struct Start: Sendable {
        fileprivate enum Base: Sendable {
            /// The entry that created the store, which is read.
            case created
            /// What an opener begins with.
            case newest(ReadStart)
            /// The snapshot before that.
            case earlier(SnapshotReference)
            /// A state that was made before.
            case made(PastState)
        }

        fileprivate let base: Base
        /// The lowest number at which the state is known with it.
        let known: SequenceNumber
        /// The first number to read.
        let first: SequenceNumber

        /// The term of the last entry in it, if that is known.
        var epoch: Epoch? { if case .made(let state) = base { state.epoch } else { nil } }
    }

    let log: LogID
    let life: SequenceNumber
    /// The log's last number.
    let newest: SequenceNumber
    /// Ascending by the number at which the state is known. *Invariant*: never empty.
    let starts: [Start]
    /// The entries for the store that have no effect.
    let skipped: [SequenceNumber]
    /// The keys of the sessions that the sequencer remembers.
    let keys: [Incarnation: Name]

    /// The states that the log keeps as they are, ascending. *Invariant*: never empty.
    let offers: [SnapshotOffer]

    /// The lowest number at which the state can be shown.
    var floor: SequenceNumber { starts[0].known }

    /// The nearest of some states that were made before, if what they were made of is as it was.
    func start(
        in made: [PastState], upTo first: SequenceNumber, without: SequenceNumber?
    ) -> Start? {
        let usable = made.filter { state in
            state.log == log && state.life == life && state.skipped == skipped
                && state.at <= first && state.at >= floor && state.at <= newest
                // Before the action that is left out, there is no difference.
                && (state.without == without
                    || (state.without == nil && without.map { state.at < $0 } == true))
        }
        return usable.max { $0.at < $1.at }.map {
            Start(base: .made($0), known: $0.at, first: $0.at.next)
        }
    }

    /// Asks the sequencer.
    ///
    /// - Throws: ``PastError``, also if there is no such store.
    init(
        of store: StoreName, on reader: NodeCore, patience: Duration
    ) async throws(PastError) {
        let (newestStart, status): (ReadStart?, SequencerStatus)
        do throws(NodeError) {
            try await reader.connected(within: patience)
            newestStart = try await reader.start(of: store, patience: patience)
            guard case .status(let found) = try await reader.ask(.status, patience: patience).body
            else { throw .unfit }
            status = found
        } catch {
            throw PastError(error)
        }
        guard let start = newestStart else { throw .unknownStore(store) }
        log = status.log
        life = start.life
        newest = status.last
        let former = start.earlier?.snapshot.map { SnapshotOffer.saved($0) }
        offers = [former].compactMap(\.self).filter { $0.sequence < start.base } + [start.offer]
        var starts: [Start] = []
        // The log must have every entry after the state.
        if start.known > life, life >= status.floor {
            starts.append(Start(base: .created, known: life, first: life))
        }
        if let former = start.earlier?.snapshot, former.sequence < start.known,
            former.sequence.next >= status.floor
        {
            starts.append(
                Start(
                    base: .earlier(former), known: former.sequence, first: former.sequence.next))
        }
        starts.append(
            Start(base: .newest(start), known: start.known, first: start.through.next))
        self.starts = starts
        skipped = start.earlier?.skipped ?? start.skipped
        keys = Dictionary(
            status.sessions.compactMap { session in
                session.owner.map { (session.incarnation, $0) }
            }, uniquingKeysWith: { $1 })
    }
}

extension PastRange.Start {
    /// Loads the state.
    ///
    /// - Returns: The state; nil if the entry that created the store is to be read.
    /// - Throws: ``PastError`` if the log no longer has it.
    func load(
        _ store: StoreName, _ life: SequenceNumber, on reader: NodeCore
    ) async throws(PastError) -> HistoryStart? {
        func bytes(_ reference: SnapshotReference) async throws(PastError) -> Bytes {
            try await reader.bytes(of: reference, store, life)
        }
        switch base {
        case .created: return nil
        case .newest(let start): return try await start.loaded(bytes)
        case .made(let state):
            return HistoryStart(
                store: store, life: life,
                snapshot: Snapshot(
                    sequence: state.sequence, schemaVersion: state.version,
                    state: EncodedState(coding: .json, bytes: state.json[...])),
                version: VersionInForce(state.version), aside: nil, skipped: [],
                through: state.at)
        case .earlier(let reference):
            return HistoryStart(
                store: store, life: life,
                snapshot: Snapshot(of: reference, try await bytes(reference)),
                version: VersionInForce(reference.schemaVersion), aside: nil, skipped: [],
                through: reference.sequence)
        }
    }
}
