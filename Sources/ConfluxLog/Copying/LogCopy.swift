import ConfluxHashing
import ConfluxVocabulary

/// Copies a log from one engine to another: its entries with their epochs, its checkpoints and its snapshots.
///
/// The copy is the same log: it has the same id and the same hashes.
public struct LogCopy {
    /// The next step.
    public enum Step: Sendable, Hashable {
        /// Copies the entries from a number on.
        case entries(from: SequenceNumber)
        /// Copies checkpoints and snapshots.
        case states
        /// Compares the entries from a number on with the source's.
        case comparison(from: SequenceNumber)
    }

    private let source: any CopiedLog
    private let target: any CopiedLog
    private let willTake: (Step) throws(LogError) -> Void

    /// About how many bytes to read and append at once: less than the largest value in etcd.
    private static let pieceBytes = 768 << 10

    /// Claims a log, copies everything, compares the copy with the log, confirms the claim, and adopts the copy.
    ///
    /// If it fails or is stopped, there is no log in the new place, and the old log is unchanged.
    ///
    /// - Parameters:
    ///   - source: The log. It stays open.
    ///   - begin: Begins the copy.
    ///   - willTake: Called before each step. If it throws, the work ends.
    /// - Returns: The epoch of the claim; the copy has the same.
    /// - Throws: `superseded` if another program claimed the log meanwhile; `failed` if the copy differs from
    ///   the log; `damaged` if the log's hashes don't follow from its entries; `unknownOutcome` if the copy
    ///   may be a log: its message says what to do. Also whatever reading the log, writing the copy, `begin`
    ///   or `willTake` throws.
    public static func make(
        of source: any CopiedLog, in begin: (LogOrigin) throws(LogError) -> any CopiedLog,
        willTake: @escaping (Step) throws(LogError) -> Void
    ) throws(LogError) -> Epoch {
        let epoch: Epoch
        var isLastStep = false
        do throws(LogError) {
            epoch = try source.claim().epoch
            let target = try begin(try source.origin())
            defer { target.close() }
            try LogCopy(source: source, target: target, willTake: willTake).fill(claimed: epoch)
            try target.adopt { () throws(LogError) in
                try source.confirm()
                isLastStep = true
            }
        } catch {
            // Only an unknown outcome of the last step can leave a log.
            guard error.code == .unknownOutcome else { throw error }
            throw isLastStep ? .perhapsAdopted(error) : LogError(.failed, error.message)
        }
        // Another program may have claimed the log at the last moment, and appended entries that the copy
        // lacks.
        do throws(LogError) {
            try source.confirm()
        } catch {
            throw .adoptedInVain(error)
        }
        return epoch
    }

    private func fill(claimed epoch: Epoch) throws(LogError) {
        let standing = try copyEntries()
        // Checkpoints and snapshots need the claim, even if there are no entries.
        _ = try target.claim(raisingEpochBy: epoch.rawValue - standing.rawValue)
        if let head = source.head, target.head != head { throw .unchained }
        try copyCheckpoints()
        try copySnapshots()
        try compare()
    }

    /// - Returns: The epoch of the last entry.
    private func copyEntries() throws(LogError) -> Epoch {
        var epoch = Epoch.none
        var next = source.floor
        while next <= source.last {
            try willTake(.entries(from: next))
            var rest = try source.read(from: next, limitBytes: Self.pieceBytes)[...]
            guard let end = rest.last?.last else { throw .missing(next) }
            while let first = rest.first {
                // An append needs the claim of its epoch.
                if first.epoch > epoch {
                    _ = try target.claim(raisingEpochBy: first.epoch.rawValue - epoch.rawValue)
                    epoch = first.epoch
                }
                let run = rest.prefix { $0.epoch == first.epoch }
                rest = rest.dropFirst(run.count)
                try target.append(Array(run), expecting: target.last, forced: false)
            }
            next = end.next
        }
        return epoch
    }

    private func copyCheckpoints() throws(LogError) {
        try willTake(.states)
        // The newest is saved last, since a newer one replaces older ones.
        for checkpoint in try checkpoints(of: source).reversed() {
            for piece in checkpoint.pieces() { try target.save(piece) }
        }
    }

    /// All checkpoints, the newest first.
    private func checkpoints(of log: any ActionLog) throws(LogError) -> [SavedCheckpoint] {
        var found: [SavedCheckpoint] = []
        var through = log.last
        while through > .zero, let checkpoint = try log.checkpoint(through: through) {
            found.append(checkpoint)
            through = SequenceNumber(checkpoint.sequence.rawValue - 1)
        }
        return found
    }

    private func copySnapshots() throws(LogError) {
        // In this order, no snapshot retires another one that the source has.
        let order: [SavedSnapshot.Kind] = [.confirmed, .aside, .compared]
        let snapshots = try source.snapshots()
        for kind in order {
            for snapshot in snapshots where snapshot.kind == kind { try copy(snapshot) }
        }
    }

    private func copy(_ snapshot: SavedSnapshot) throws(LogError) {
        var offset: UInt64 = 0
        repeat {
            try willTake(.states)
            let bytes = try source.readSnapshot(
                of: snapshot.key, from: offset, limitBytes: Self.pieceBytes)
            guard let bytes, !bytes.isEmpty || snapshot.byteCount == 0 else {
                throw .changed("The snapshot of \(snapshot.key) is gone")
            }
            try target.save(SnapshotPiece(snapshot: snapshot, offset: offset, bytes: bytes))
            offset += UInt64(bytes.count)
        } while offset < snapshot.byteCount
    }

    /// Reads the log and the copy again in full, and compares them.
    private func compare() throws(LogError) {
        guard source.floor == target.floor, source.last == target.last else {
            throw .differs("entries \(target.floor) to \(target.last)")
        }
        var next = source.floor
        while next <= source.last {
            try willTake(.comparison(from: next))
            let commits = try source.read(from: next, limitBytes: Self.pieceBytes)
            guard let end = commits.last?.last else { throw .missing(next) }
            guard try target.read(from: next, limitBytes: Self.pieceBytes) == commits else {
                throw .differs("the entries from \(next)")
            }
            next = end.next
        }
        guard try checkpoints(of: source) == checkpoints(of: target) else {
            throw .differs("the checkpoints")
        }
        let snapshots = try source.snapshots()
        guard try target.snapshots() == snapshots else { throw .differs("the list of snapshots") }
        for snapshot in snapshots {
            guard try digest(of: snapshot) == snapshot.digest else {
                throw .differs("the snapshot of \(snapshot.key)")
            }
        }
    }

    /// The digest of the copy's bytes; nil if bytes are missing.
    private func digest(of snapshot: SavedSnapshot) throws(LogError) -> Digest? {
        var hasher = DigestHasher()
        while hasher.byteCount < snapshot.byteCount {
            try willTake(.states)
            let bytes = try target.readSnapshot(
                of: snapshot.key, from: hasher.byteCount, limitBytes: Self.pieceBytes)
            guard let bytes, !bytes.isEmpty else { return nil }
            hasher.update(bytes)
        }
        return hasher.finish()
    }
}

extension LogError {
    fileprivate static func perhapsAdopted(_ error: LogError) -> LogError {
        LogError(
            .unknownOutcome,
            "The copy is complete, and may already be the log: \(error.message) Run the same "
                + "again before you start a sequencer: if it says that the log is there already, the "
                + "new place has it."
        )
    }

    fileprivate static func adoptedInVain(_ error: LogError) -> LogError {
        LogError(
            .unknownOutcome,
            "The copy is a log now, but the old log may have got entries in the last moment, which the copy "
                + "lacks: \(error.message) End all sequencers, remove the copy, and make it again.")
    }

    fileprivate static let unchained = LogError(
        .damaged,
        "The hashes of the log do not follow from its entries: something was changed after it was written. "
            + "Look with \"conflux log --verify\", and restore the log from a backup.")

    fileprivate static func missing(_ number: SequenceNumber) -> LogError {
        .damaged(number, number, "missing")
    }

    fileprivate static func changed(_ what: String) -> LogError {
        LogError(
            .failed,
            "\(what): another program changed the log while it was copied. Stop it; try again.")
    }

    fileprivate static func differs(_ what: String) -> LogError {
        LogError(
            .failed,
            "The copy differs from the log in \(what). Nothing was moved, and the log is as it was. Try again; if "
                + "it fails again, check the machines' memory and disks.")
    }
}
