import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// One pass over the log for the entries of some stores, which are to be kept beside it (rule 21).
/// It is done in steps, with whatever else is asked of the log in between: who reads the log for
/// others gathers the entries, and then who owns it saves them.
// Sendable: whoever has the job has the run, one thread at a time.
package final class AsideRun: @unchecked Sendable {
    /// How many bytes of entries are held. *At the bound* it is read no further, and the next pass
    /// continues.
    package static let heldBytesMax = 64 << 20

    let stores: [AsideJob]
    /// The last number that is looked at; less than was asked for where that would be too much.
    private(set) var through: SequenceNumber
    private let heldBytesMax: Int
    private let byStore: [StoreName: Int]
    private let byState: [Name: [Int]]
    /// What is read next.
    private var next: SequenceNumber
    /// In the order of `stores`; empty until the first step.
    fileprivate private(set) var entries: [AsideEntries] = []
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
    private func add(_ commit: Commit) {
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
            case .event(.upgraded(let name, _, _, _), _), .event(.frozen(let name, _, _), _),
                .event(.thawed(let name, _), _), .event(.digestPoint(let name, _), _):
                add(.store(name))
            case .event(.skipped(_, let target), _): add(target)
            case .event: break
            }
        }
        for index in concerned { entries[index].add(commit) }
    }

    /// What a store has can't be kept. The others can.
    fileprivate func fail(_ store: StoreName, _ error: LogError) {
        failures[store] = failures[store] ?? error.message
    }

    fileprivate func hasFailed(_ store: StoreName) -> Bool { failures[store] != nil }

    /// The next one is in the log; nil if nothing of the log concerns it, or it has failed.
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

extension AsideRun {
    /// How many bytes of commits are looked through at once.
    private static let readBytes = 4 << 20

    /// Does the next step of what is read.
    ///
    /// - Returns: Whether all of it is done.
    func gather(from reader: any LogReader) -> Bool {
        if entries.count < stores.count {
            // One at a step, so that nobody else waits long.
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
            // Whom what can't be read concerns is not known.
            for job in stores where job.after < through { fail(job.store, error) }
            return true
        }
    }

    /// What is kept of a store already.
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
                        "What was kept aside for \(job.store) is not there any more. Keep it aside anew."
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
    /// The most bytes of one piece that is saved.
    fileprivate static let asidePieceBytes = 1 << 20

    /// Saves the next piece of what a pass has gathered.
    ///
    /// - Returns: Whether it was the last one.
    func save(_ run: AsideRun) throws(LogError) -> Bool {
        do throws(LogError) {
            return try saveNext(of: run)
        } catch {
            guard Self.isPassing(error) else { throw error }
            // Those that were kept are; the others are asked for again.
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
