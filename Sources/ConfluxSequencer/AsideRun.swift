import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// One pass over the log that gathers the entries of some stores, to keep them aside (rule 21). The pass runs
/// in steps, so that other jobs can run in between: first the log's reader gathers the entries, then the
/// log's owner saves them.
// Sendable: only the job refers to the run, and one thread at a time has the job.
package final class AsideRun: @unchecked Sendable {
    /// The most bytes of gathered entries to hold. *At the bound* this pass stops reading, and the next pass
    /// continues.
    package static let heldBytesMax = 64 << 20

    let stores: [AsideJob]
    /// The last number that this pass reads. Lower than requested if the entries exceed `heldBytesMax`.
    private(set) var through: SequenceNumber
    private let heldBytesMax: Int
    private let byStore: [StoreName: Int]
    private let byState: [Name: [Int]]
    /// The next number to read.
    private var next: SequenceNumber
    /// In the order of `stores`; empty until the first step.
    fileprivate private(set) var entries: [AsideEntries] = []
    /// The results so far, in the order of `stores`: what was kept of each store, or why it was not.
    fileprivate var kept: [AsideKept] = []
    private var failures: [StoreName: String] = [:]
    /// The snapshot that is being saved for the next store, and how many of its bytes are saved.
    fileprivate var saving: SavedSnapshot?
    fileprivate var savedBytes = 0

    /// Makes a pass.
    ///
    /// - Parameters:
    ///   - stores: The stores whose entries are wanted.
    ///   - through: The last number to read.
    ///   - heldBytesMax: The most bytes of gathered entries to hold.
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

    /// Adds a commit to each store that it concerns.
    private func add(_ commit: Commit) {
        var concerned: Set<Int> = []
        func add(_ target: Target) {
            switch target {
            case .store(let name): byStore[name].map { _ = concerned.insert($0) }
            case .state(let state): concerned.formUnion(byState[state] ?? [])
            case .event(_, let states):
                for state in states { concerned.formUnion(byState[state] ?? []) }
            }
        }
        for block in commit.blocks {
            switch block {
            case .batch(_, let batch):
                for row in batch.targets { add(row.target) }
            case .event(.upgraded(let name, _, _, _, _), _), .event(.frozen(let name, _, _), _),
                .event(.thawed(let name, _), _), .event(.digestPoint(let name, _), _):
                add(.store(name))
            case .event(.skipped(_, let target), _): add(target)
            case .event: break
            }
        }
        for index in concerned { entries[index].add(commit) }
    }

    /// Notes that the entries of one store can't be kept. The other stores are not affected.
    fileprivate func fail(_ store: StoreName, _ error: LogError) {
        failures[store] = failures[store] ?? error.message
    }

    fileprivate func hasFailed(_ store: StoreName) -> Bool { failures[store] != nil }

    /// Notes that the next store is saved; the snapshot is nil if no entry concerns the store, or if it
    /// failed.
    fileprivate func keep(_ snapshot: SavedSnapshot?, of job: AsideJob) {
        kept.append(
            AsideKept(
                store: job.store, life: job.life, through: through,
                reference: snapshot.map(SnapshotReference.init), failure: failures[job.store]))
        saving = nil
        savedBytes = 0
    }

    /// Leaves a store as it was kept before: this pass ended early and read nothing new for it.
    fileprivate func leave(_ job: AsideJob) {
        kept.append(
            AsideKept(
                store: job.store, life: job.life, through: job.after, reference: job.former))
    }
}

extension AsideRun {
    /// How many bytes of commits to read at once.
    private static let readBytes = 4 << 20

    /// Does the next step of gathering.
    ///
    /// - Returns: Whether everything is gathered.
    func gather(from reader: any LogReader) -> Bool {
        if entries.count < stores.count {
            // One store in each step, so that no other job waits long.
            let job = stores[entries.count]
            do throws(LogError) {
                entries.append(try beginning(of: job, in: reader))
            } catch {
                fail(job.store, error)
                entries.append(AsideEntries(job.store, life: job.life, after: job.after))
            }
            return false
        }
        guard next <= through else { return true }
        do throws(LogError) {
            let commits = try reader.read(
                from: next, through: through, limitBytes: Self.readBytes)
            for logged in commits {
                do throws(WireError) {
                    add(try Commit.decode(body: logged.bytes))
                } catch {
                    throw LogError(
                        .damaged, "The commit at \(logged.first) is not readable: \(error)",
                        numbers: logged.first...logged.last)
                }
            }
            next = commits.last?.last.next ?? through.next
            if entries.reduce(0, { $0 + $1.bytes.count }) > heldBytesMax,
                let last = commits.last?.last
            {
                through = min(through, last)
            }
            return false
        } catch {
            // It is unknown which stores the unreadable commits concern, so all stores that need them fail.
            for job in stores where job.after < through { fail(job.store, error) }
            return true
        }
    }

    /// Reads what was kept aside for a store before.
    private func beginning(
        of job: AsideJob, in reader: any LogReader
    ) throws(LogError) -> AsideEntries {
        var kept: [UInt8] = []
        if let former = job.former {
            let key = SavedSnapshot.Key(
                store: job.store, life: job.life, sequence: former.sequence)
            kept.reserveCapacity(Int(clamping: former.byteCount))
            while UInt64(kept.count) < former.byteCount {
                let bytes = try reader.readSnapshot(
                    of: key, from: UInt64(kept.count), limitBytes: LogWorker.asidePieceBytes)
                guard let bytes, !bytes.isEmpty else {
                    throw LogError(
                        .failed,
                        "What was kept aside for \(job.store) is not there any more. Keep it "
                            + "aside again."
                    )
                }
                kept += bytes
            }
        }
        return AsideEntries(
            job.store, life: job.life, after: job.after, behind: kept[...])
    }
}

extension LogWorker {
    /// The most bytes to save in one piece.
    fileprivate static let asidePieceBytes = 1 << 20

    /// Saves the next piece of what a pass has gathered.
    ///
    /// - Returns: Whether that was the last piece.
    func save(_ run: AsideRun) throws(LogError) -> Bool {
        do throws(LogError) {
            return try saveNext(of: run)
        } catch {
            guard Self.isPassing(error) else { throw error }
            // Stores that were kept stay kept; the machine asks for the others later.
            for job in run.stores.dropFirst(run.kept.count) {
                run.fail(job.store, error)
                run.keep(nil, of: job)
            }
            answer(.keptAside(run.kept))
            return true
        }
    }

    private func saveNext(of run: AsideRun) throws(LogError) -> Bool {
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
            try log.save(piece)
        } catch {
            // For example, if it is too large.
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
