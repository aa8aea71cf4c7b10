import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// Applies the entries of a history, with the code that applies them in a node. It uses one thread: all stores are
/// immediate.
final class Replayer {
    /// A store of the history that lives at present.
    private struct Hosted {
        var life: SequenceNumber
        /// The schema version in force.
        var version: UInt32
        /// The entries that concerned it since the last point at which its state was compared.
        var pending: (first: SequenceNumber, last: SequenceNumber, count: Int)?
    }

    /// An entry at which a store stopped.
    struct Stop {
        var sequence: SequenceNumber
        var store: StoreName
        var message: String
    }

    private let states: [Name: ReplayedState]
    private let scope = Scope()
    private let applier: Applier
    private let posted: Posted
    private var hosted: [StoreName: Hosted] = [:]
    /// How many times an entry concerned a store that lived.
    private(set) var concernedCount: UInt64 = 0
    private let outline: HistoryOutline

    /// The jobs that the applier posts to itself.
    // Sendable: the mutex guards the jobs.
    private final class Posted: Sendable {
        let jobs = Mutex<[ApplyJob]>([])
    }

    /// - Parameters:
    ///   - outline: What is known of the history from the beginning.
    ///   - states: The states.
    init(of outline: HistoryOutline, _ states: [Name: ReplayedState]) {
        self.outline = outline
        self.states = states
        let posted = Posted()
        self.posted = posted
        applier = Applier(
            refusalBytesMax: .max, tell: { _ in },
            post: { job in posted.jobs.withLock { $0.append(job) } }, clock: { .zero },
            shelf: EncodingShelf(bytesMax: 0), inPlaceBytesMax: .max, openBytesMax: .max)
    }

    /// Whether the history has the store.
    func includes(_ store: StoreName) -> Bool {
        outline.target.map { $0.concerns(store) } ?? true
    }

    /// The stores that live at present.
    var stores: [StoreName] { hosted.keys.sorted() }

    func life(of store: StoreName) -> SequenceNumber? { hosted[store]?.life }

    /// The number of the last entry that concerned a store.
    func position(of store: StoreName) -> SequenceNumber? { applier.replica(store)?.lastChange }

    /// The schema version by whose rules a store's actions are judged at present.
    func version(of store: StoreName) -> UInt32? { hosted[store]?.version }

    private func perform(_ delivery: Delivery) {
        scope.run {
            applier.perform(.deliver(delivery, log: outline.log, epoch: .none))
            while case let jobs = posted.jobs.withLock({ jobs in
                return exchange(&jobs, with: [])
            }), !jobs.isEmpty {
                for job in jobs { applier.perform(job) }
            }
        }
    }

    // MARK: Lives

    /// Begins a store.
    ///
    /// - Throws: ``HistoryError`` if the code at hand does not know its state, or can't read the snapshot.
    func begin(_ start: HistoryStart) throws(HistoryError) {
        guard let state = states[start.store.state] else {
            throw HistoryError(
                code: .unknownState,
                message: """
                    The history has the store \(start.store), and its state \(start.store.state) was not given. \
                    Give the state, or export the history with --target.
                    """)
        }
        guard start.version.version <= state.versions.newest else {
            throw HistoryError(
                code: .unreadableState,
                message: """
                    \(start.store) has schema version \(start.version.version) where the history begins, and this \
                    program knows \(state.versions.newest). Replay it with a newer program.
                    """)
        }
        state.host(start.store, applier, scope)
        var version = start.version
        // The version rises from this very state on, by an entry of the history. An older program stops there.
        for rise in outline.rises
        where rise.store == start.store && rise.life == start.life
            && rise.base == start.snapshot.sequence && rise.version.version > version.version
            && rise.version.version <= state.versions.newest
        { version = rise.version }
        // A program that no longer understands the version judges by its oldest, as if the version had risen before.
        if version.version < state.versions.oldest {
            version = VersionInForce(state.versions.oldest)
        }
        if let stop = restore(start, in: version) {
            throw HistoryError(
                code: .unreadableState,
                message: "The history's state of \(start.store) can't be used: \(stop.message)")
        }
    }

    /// Gives a store a state.
    ///
    /// - Returns: Why the store can't begin with it.
    private func restore(_ start: HistoryStart, in version: VersionInForce) -> Stop? {
        let later = outline.skips.filter {
            $0.sequence > start.snapshot.sequence && $0.target.concerns(start.store)
        }
        perform(
            .restore(
                start.store, life: start.life, start.snapshot, in: version, aside: start.aside,
                skipped: start.skipped + later.map(\.sequence), through: start.through, request: 1))
        if let stop = applier.replica(start.store)?.progress.stop {
            return Stop(sequence: start.through, store: start.store, message: stop.message)
        }
        perform(.begin(.store(start.store)))
        perform(.attach(.store(start.store)))
        hosted[start.store] = Hosted(life: start.life, version: version.version)
        return nil
    }

    /// Raises the schema versions of stores that rise behind an entry. As in a node, the store begins anew with the
    /// state that it has there, which must become what the nodes that migrated it had.
    func rise(behind sequence: SequenceNumber) -> Stop? {
        for rise in outline.rises where rise.base == sequence {
            guard let life = hosted[rise.store], life.life == rise.life,
                rise.version.version > life.version, let state = states[rise.store.state]
            else { continue }
            guard rise.version.version <= state.versions.newest else {
                return Stop(
                    sequence: sequence, store: rise.store,
                    message: """
                        the store has schema version \(rise.version.version) from entry \(sequence) on, and this \
                        program knows \(state.versions.newest)
                        """)
            }
            do {
                let start = HistoryStart(
                    store: rise.store, life: rise.life,
                    snapshot: Snapshot(
                        sequence: sequence, schemaVersion: life.version,
                        state: EncodedState(
                            coding: .json, bytes: try encoding(of: rise.store)[...])),
                    version: rise.version, aside: nil, skipped: [], through: sequence)
                if let stop = restore(start, in: rise.version) { return stop }
            } catch {
                return Stop(
                    sequence: sequence, store: rise.store, message: "it has no state: \(error)")
            }
            hosted[rise.store]?.pending = life.pending
        }
        return nil
    }

    // MARK: Entries

    /// The entries behind which a commit has to be cut, so that lives begin and end, and versions rise, between two
    /// parts.
    func cuts(of commit: Commit) -> Set<SequenceNumber> {
        var cuts = Set(outline.rises.map(\.base).filter { commit.first...commit.last ~= $0 })
        commit.forEachEvent { event, sequence in
            switch event {
            case .created, .dropped:
                cuts.insert(SequenceNumber(sequence.rawValue - 1))
                cuts.insert(sequence)
            default: break
            }
        }
        return cuts
    }

    /// Applies a part of a commit.
    ///
    /// - Parameters:
    ///   - part: The part. Lives begin and end in parts of their own.
    ///   - refusals: Gets the entries without effect.
    /// - Returns: Why a store stopped, if one did.
    /// - Throws: ``HistoryError`` for a store that can't begin.
    func apply(
        _ part: Commit, _ refusals: inout [HistoryRecord.Refusal]
    ) throws(HistoryError) -> Stop? {
        var concerned: Set<StoreName> = []
        var sequence = part.first
        for block in part.blocks {
            switch block {
            case .event(.created(let store, let schemaVersion, let initial), _)
            where includes(store):
                try begin(
                    HistoryStart(
                        store: store, life: sequence,
                        snapshot: Snapshot(
                            sequence: sequence, schemaVersion: schemaVersion, state: initial),
                        version: VersionInForce(schemaVersion), aside: nil, skipped: [],
                        through: sequence))
            case .event(.dropped(let store, let life), _) where hosted[store]?.life == life:
                hosted[store] = nil
            case .event: break
            case .batch(_, let batch): note(batch, at: sequence, &concerned)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        perform(.commit(part, byteCount: 0))
        var stop: Stop?
        for store in concerned.sorted() {
            guard let progress = applier.replica(store)?.progress else { continue }
            for (sequence, reason) in progress.effects.takeAll() {
                refusals.append(
                    HistoryRecord.Refusal(sequence: sequence, store: store, reason: reason))
            }
            if let found = progress.stop, stop == nil {
                stop = Stop(
                    sequence: found.at ?? part.first, store: store, message: found.message)
            }
        }
        return stop
    }

    private func note(
        _ batch: Batch, at first: SequenceNumber, _ concerned: inout Set<StoreName>
    ) {
        let rows = batch.targets.map { stores(concernedBy: $0.target) }
        var sequence = first
        batch.forEachEntry { row, _ in
            for store in rows[row] {
                let former = hosted[store]?.pending
                hosted[store]?.pending = (
                    former?.first ?? sequence, sequence, (former?.count ?? 0) + 1
                )
                concerned.insert(store)
                concernedCount += 1
            }
            sequence = sequence.next
        }
    }

    /// The stores that live at present and that an entry concerns.
    func stores(concernedBy target: Target) -> [StoreName] {
        switch target {
        case .store(let store): hosted[store] == nil ? [] : [store]
        case .state, .event: stores.filter { target.concerns($0) }
        }
    }

    // MARK: States

    /// The canonical encoding of a store's state, in the form of the version in force.
    ///
    /// - Throws: Why it can't be encoded.
    func encoding(of store: StoreName) throws -> [UInt8] {
        guard let replica = applier.replica(store) else {
            preconditionFailure("the replay does not host \(store)")
        }
        // Sendable: no other thread is there, and the store is immediate, so `copy` writes before it returns.
        nonisolated(unsafe) var encoding: Encoding?
        replica.copy { encoding = $0 }
        guard let encoding else { preconditionFailure("\(store) was released") }
        return try encoding()
    }

    /// The entries that concerned a store since the last call with `isEqual`, and how many they are.
    func pending(
        of store: StoreName, isEqual: Bool
    ) -> (first: SequenceNumber, last: SequenceNumber, count: Int)? {
        defer { if isEqual { hosted[store]?.pending = nil } }
        return hosted[store]?.pending
    }
}

extension Commit {
    /// Visits the log's own events, with their numbers.
    package func forEachEvent(_ body: (LogEvent, SequenceNumber) -> Void) {
        var sequence = first
        for block in blocks {
            if case .event(let event, _) = block { body(event, sequence) }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
    }

    /// The action with a number, and its row of the table of targets; nil if the entry is none.
    package func action(at number: SequenceNumber) -> (BatchTarget, Bytes)? {
        var sequence = first
        for block in blocks {
            let next = sequence.advanced(by: UInt64(block.count))
            if case .batch(_, let batch) = block, (sequence..<next).contains(number) {
                var found: (BatchTarget, Bytes)?
                batch.forEachEntry { row, payload in
                    if sequence == number { found = (batch.targets[row], payload) }
                    sequence = sequence.next
                }
                return found
            }
            sequence = next
        }
        return nil
    }
}
