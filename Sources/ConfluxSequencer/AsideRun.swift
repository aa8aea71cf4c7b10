import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// One pass over the log for the entries of some stores, which are to be kept beside it (rule 21).
/// It is done in steps, with whatever else is asked of the log in between.
// Sendable: whoever has the job has the run, one thread at a time.
package final class AsideRun: @unchecked Sendable {
    /// How many bytes of entries are held. *At the bound* it is read no further, and the next pass
    /// goes on.
    package static let heldBytesMax = 64 << 20

    let stores: [AsideJob]
    /// The last number that is looked at; less than was asked for where that would be too much.
    fileprivate(set) var through: SequenceNumber
    private let heldBytesMax: Int
    private let byStore: [StoreName: Int]
    private let byState: [Name: [Int]]
    /// What is read next.
    fileprivate var next: SequenceNumber
    /// In the order of `stores`; empty until the first step.
    fileprivate var entries: [AsideEntries] = []
    /// What is kept of the first of the stores, or why it is not.
    fileprivate var kept: [AsideKept] = []
    private var failures: [StoreName: String] = [:]
    /// What is being saved of the next one, and how much of it is there.
    fileprivate var saving: SavedSnapshot?
    fileprivate var savedBytes = 0

    /// Makes a pass.
    ///
    /// - Parameters:
    ///   - stores: Of which entries are wanted.
    ///   - through: The last number that is looked at.
    ///   - heldBytesMax: How many bytes of entries are held.
    package init(
        _ stores: [AsideJob], through: SequenceNumber, heldBytesMax: Int = AsideRun.heldBytesMax
    ) {
        self.stores = stores
        self.through = through
        self.heldBytesMax = heldBytesMax
        byStore = Dictionary(
            stores.enumerated().map { ($0.element.store, $0.offset) },
            uniquingKeysWith: { first, _ in first })
        byState = Dictionary(grouping: stores.indices) { stores[$0].store.state }
        next = stores.map(\.after).min()?.next ?? through.next
    }

    /// Adds what of a commit concerns the stores; those that it does not concern cost nothing.
    fileprivate func add(_ commit: Commit) {
        var concerned: Set<Int> = []
        func add(_ target: Target) {
            switch target {
            case .store(let name): byStore[name].map { _ = concerned.insert($0) }
            case .state(let state): concerned.formUnion(byState[state] ?? [])
            case .event: break
            }
        }
        for block in commit.blocks {
            switch block {
            case .batch(_, let batch):
                for row in batch.targets { add(row.target) }
            case .event(.upgraded(let name, _, _, _)), .event(.frozen(let name, _, _)),
                .event(.thawed(let name, _)), .event(.digestPoint(let name, _)):
                add(.store(name))
            case .event(.skipped(_, let target)): add(target)
            case .event: break
            }
        }
        for index in concerned { entries[index].add(commit) }
    }

    /// Whether it holds so much that it ends where it is.
    fileprivate var isFull: Bool { entries.reduce(0) { $0 + $1.bytes.count } > heldBytesMax }

    /// What a store has can't be kept. The others can.
    fileprivate func fail(_ store: StoreName, _ error: LogError) {
        failures[store] = failures[store] ?? error.message
    }

    fileprivate func hasFailed(_ store: StoreName) -> Bool { failures[store] != nil }

    /// The next one is in the log; nil where nothing of the log concerns it, or it has failed.
    fileprivate func keep(_ snapshot: SavedSnapshot?, of job: AsideJob) {
        kept.append(
            AsideKept(
                store: job.store, life: job.life, through: through,
                reference: snapshot.map(SnapshotReference.init), failure: failures[job.store]))
        saving = nil
        savedBytes = 0
    }

    /// A pass that ended early did not come to what this one has already: that stays as it is.
    fileprivate func leave(_ job: AsideJob) {
        kept.append(
            AsideKept(
                store: job.store, life: job.life, through: job.after, reference: job.former))
    }
}

extension LogWorker {
    /// How many bytes of commits are looked through at once.
    private static let asideBytes = 4 << 20
    /// The most bytes of one piece that is saved.
    private static let asidePieceBytes = 1 << 20

    /// Does the next step of a pass.
    ///
    /// - Returns: Whether it is done.
    func work(on run: AsideRun) throws(LogError) -> Bool {
        do throws(LogError) {
            return try step(run)
        } catch {
            guard Self.isPassing(error) || error.code == .damaged else { throw error }
            // Those that were kept are; the others are asked for again.
            answer(.keptAside(run.kept))
            return true
        }
    }

    private func step(_ run: AsideRun) throws(LogError) -> Bool {
        if run.entries.count < run.stores.count {
            // One at a step, so that no append waits long.
            let job = run.stores[run.entries.count]
            do throws(LogError) {
                run.entries.append(try beginning(of: job))
            } catch {
                guard Self.isPassing(error) || error.code == .damaged else { throw error }
                run.fail(job.store, error)
                run.entries.append(AsideEntries(job.store, life: job.life, after: job.after))
            }
            return false
        }
        guard run.next <= run.through else { return try save(run) }
        let commits = try log.read(from: run.next, limitBytes: Self.asideBytes)
        for logged in commits where logged.first <= run.through {
            do throws(WireError) {
                run.add(try Commit.decode(body: logged.bytes))
            } catch {
                throw LogError(
                    .damaged, "The commit at \(logged.first) is not readable: \(error)",
                    numbers: logged.first...logged.last)
            }
        }
        run.next = commits.last?.last.next ?? run.through.next
        if run.isFull, let last = commits.last?.last {
            run.through = min(run.through, last)
        }
        return false
    }

    /// What is kept of a store already.
    private func beginning(of job: AsideJob) throws(LogError) -> AsideEntries {
        var kept: [UInt8] = []
        if let former = job.former {
            let key = SavedSnapshot.Key(
                store: job.store, life: job.life, sequence: former.sequence)
            kept.reserveCapacity(Int(clamping: former.byteCount))
            while UInt64(kept.count) < former.byteCount {
                let bytes = try log.readSnapshot(
                    of: key, from: UInt64(kept.count), limitBytes: Self.asidePieceBytes)
                guard let bytes, !bytes.isEmpty else {
                    throw LogError(
                        .failed, "What was kept aside for \(job.store) is not there any more.")
                }
                kept += bytes
            }
        }
        return AsideEntries(
            job.store, life: job.life, after: job.after, behind: kept[...])
    }

    /// Saves the next piece of what was found.
    ///
    /// - Returns: Whether it was the last one.
    private func save(_ run: AsideRun) throws(LogError) -> Bool {
        guard run.kept.count < run.stores.count else {
            answer(.keptAside(run.kept))
            return true
        }
        let job = run.stores[run.kept.count]
        guard job.after < run.through else {
            run.leave(job)
            return false
        }
        let bytes = run.entries[run.kept.count].bytes[...]
        guard !bytes.isEmpty, !run.hasFailed(job.store) else {
            run.keep(nil, of: job)
            return false
        }
        let snapshot =
            run.saving
            ?? SavedSnapshot(
                store: job.store, life: job.life, sequence: run.through, schemaVersion: 0,
                digest: Digest(of: bytes), byteCount: UInt64(bytes.count), kind: .aside)
        run.saving = snapshot
        let piece = SnapshotPiece(
            snapshot: snapshot, offset: UInt64(run.savedBytes),
            bytes: bytes.dropFirst(run.savedBytes).prefix(Self.asidePieceBytes))
        do throws(LogError) {
            try save(piece)
        } catch {
            // Too much, for example.
            guard error.code == .invalidSnapshot else { throw error }
            run.fail(job.store, error)
            run.keep(nil, of: job)
            return false
        }
        run.savedBytes += piece.bytes.count
        if piece.isLast { run.keep(snapshot, of: job) }
        return false
    }
}
