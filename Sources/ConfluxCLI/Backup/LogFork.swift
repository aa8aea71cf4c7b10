import ConfluxLog
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// Makes another log of the beginning of a log on disk, while that is served.
///
/// The fork has the same entries up to a number, each in its commit and term, under a new log id. So no node takes one
/// log for the other: its hello names the log. It ends with a term of its own, which says what it was made of
/// (`forked`). Checkpoints and snapshots up to the number come along, as far as the log needs them.
struct LogFork {
    private let source: SQLiteLogFile
    private let target: SQLiteLog
    private let last: SequenceNumber
    private let isEnded: () -> Bool
    private let progress: (Int, Int) -> Void

    private static let pieceBytes = 4 << 20
    /// The most by which the epoch rises, as in a term of a sequencer.
    private static let epochStepMax: UInt64 = 1 << 20

    /// Makes the fork.
    ///
    /// - Parameters:
    ///   - source: The log.
    ///   - last: The last entry to take over.
    ///   - folder: A folder without a log.
    ///   - isEnded: Called now and then; true ends the work.
    ///   - progress: Called now and then with the number of copied entries and their total.
    ///   - check: Checks the fork. If it fails, the fork is removed.
    /// - Throws: ``CommandFailure``. Then there is no log in the folder.
    static func make(
        of source: SQLiteLogFile, through last: SequenceNumber, in folder: String,
        unless isEnded: @escaping () -> Bool, progress: @escaping (Int, Int) -> Void,
        _ check: (SQLiteLogFile) throws(CommandFailure) -> Void
    ) throws(CommandFailure) {
        guard last >= source.floor, last <= source.last else {
            throw CommandFailure(
                .notFound, code: last > source.last ? "aboveNewest" : "belowFloor",
                "The log has the entries \(source.floor) to \(source.last), and not \(last). Give one of those with --at."
            )
        }
        let log = LogID.random()
        let origin = LogOrigin(log: log, floor: source.floor, hash: .genesis(of: log))
        let target = try failing { () throws(LogError) in
            try SQLiteLog(copyWith: origin, in: folder)
        }
        defer { target.close() }
        let fork = LogFork(
            source: source, target: target, last: last, isEnded: isEnded, progress: progress)
        var failure: CommandFailure?
        do throws(CommandFailure) {
            try fork.fill()
            try failing { () throws(LogError) in
                try target.adopt { copy in
                    do throws(CommandFailure) { try check(copy) } catch { failure = error }
                    return failure == nil
                }
            }
        } catch {
            failure = failure ?? error
            // If this fails, too, what is left is not a log.
            do throws(LogError) { try target.abandon() } catch {
                failure = CommandFailure(
                    .cannotCreate, code: error.code.rawValue,
                    "\(failure?.message ?? "") What was written is left in \(folder): \(error.message)"
                )
            }
        }
        if let failure { throw failure }
    }

    private func fill() throws(CommandFailure) {
        let checkpoints = try failing { () throws(LogError) in try self.checkpoints() }
        let state: LogState
        do {
            state = try copyEntries(after: checkpoints.last)
        } catch let failure as CommandFailure {
            throw failure
        } catch let error as LogError {
            throw error.failure
        } catch {
            throw CommandFailure(
                .logFailed, code: LogError.Code.damaged.rawValue,
                "The log is not what a sequencer wrote: \(error). Look with conflux log --verify.")
        }
        let snapshots = try failing { () throws(LogError) in
            try source.snapshots().filter { $0.sequence <= last && $0.kind != .compared }
        }
        try checkStates(of: state, snapshots)
        try failing { () throws(LogError) in
            try endTerm(after: state)
            // The newest is saved last, since a newer one replaces older ones.
            for checkpoint in checkpoints.reversed() { try save(checkpoint) }
            let order: [SavedSnapshot.Kind] = [.confirmed, .aside]
            for kind in order {
                for snapshot in snapshots where snapshot.kind == kind { try copy(snapshot) }
            }
        }
    }

    // MARK: Entries

    /// The checkpoints up to the number, the newest first.
    private func checkpoints() throws(LogError) -> [SavedCheckpoint] {
        var found: [SavedCheckpoint] = []
        var through = last
        while through > .zero, let checkpoint = try source.checkpoint(through: through),
            checkpoint.sequence.next >= source.floor
        {
            found.append(checkpoint)
            through = SequenceNumber(checkpoint.sequence.rawValue - 1)
        }
        return found
    }

    /// Copies the entries up to the number.
    ///
    /// - Parameter base: The oldest checkpoint; nil if the log has all entries from its beginning.
    /// - Returns: The state of the log there.
    /// - Throws: A `CommandFailure` that says why the entries can't be read or written.
    private func copyEntries(after base: SavedCheckpoint?) throws -> LogState {
        guard base != nil || source.floor <= 1 else { throw belowFloor(try lowestCheckpoint()) }
        var state =
            try base.map { try LogState(checkpoint: $0.bytes).of(target.id) }
            ?? LogState(log: target.id)
        var epoch = Epoch.none
        while target.last < last {
            try checkInterruption()
            let next = max(target.last.next, source.floor)
            let piece = try source.read(from: next, through: last, limitBytes: Self.pieceBytes)
            guard let first = piece.first, first.first == next else {
                throw CommandFailure(
                    .logFailed, code: "discarded",
                    "The log discarded entry \(next) meanwhile. Run the command again.")
            }
            var commits: [LoggedCommit] = []
            for logged in piece where logged.first <= last {
                let commit = try fork(try Commit.decode(body: logged.bytes))
                let bytes = commit.encodedBody()
                if commit.first > state.last { try state.apply(commit, byteCount: bytes.count) }
                // An append needs the claim of its epoch.
                if commit.epoch > epoch {
                    try append(commits)
                    commits = []
                    _ = try target.claim(
                        raisingEpochBy: commit.epoch.rawValue - epoch.rawValue)
                    epoch = commit.epoch
                }
                commits.append(
                    LoggedCommit(
                        first: commit.first, last: commit.last, epoch: commit.epoch, bytes: bytes))
            }
            try append(commits)
            progress(
                Int(target.last.next.rawValue - source.floor.rawValue),
                Int(last.next.rawValue - source.floor.rawValue))
        }
        return state
    }

    private func append(_ commits: [LoggedCommit]) throws(LogError) {
        guard !commits.isEmpty else { return }
        try target.append(commits, expecting: target.last, forced: false)
    }

    /// The part of a commit up to the number, as a commit of the fork.
    private func fork(_ commit: Commit) throws(CommandFailure) -> Commit {
        let part = commit.last > last ? commit.cut(behind: [last])[0] : commit
        var sequence = commit.first
        for block in commit.blocks {
            let end = sequence.advanced(by: UInt64(block.count) - 1)
            if case .batch(_, let batch) = block, batch.isAtomic, sequence <= last, end > last {
                throw CommandFailure(
                    .invalidInput, code: "insideTransaction",
                    """
                    Entry \(last) is within the transaction of the entries \(sequence) to \(end). Give --at \
                    \(sequence.rawValue - 1) or --at \(end).
                    """)
            }
            sequence = end.next
        }
        return part.of(target.id)
    }

    /// Ends the fork with a term of its own.
    private func endTerm(after state: LogState) throws(LogError) {
        let epoch = try target.claim(raisingEpochBy: .random(in: 1...Self.epochStepMax)).epoch
        var builder = CommitBuilder(
            log: target.id, epoch: epoch, predecessor: state.lastEpoch, first: last.next)
        builder.append(.claim(epoch: epoch, nonce: .random()))
        builder.append(.forked(from: source.id))
        let frame = builder.finish(timestamp: state.lastTimestamp)
        try append([
            LoggedCommit(
                first: last.next, last: last.next.next, epoch: epoch,
                bytes: frame.dropFirst(Frame.size))
        ])
    }

    // MARK: States

    private func save(_ checkpoint: SavedCheckpoint) throws(LogError) {
        let bytes: [UInt8]
        do throws(WireError) {
            bytes = try LogState(checkpoint: checkpoint.bytes).of(target.id).encoded()
        } catch {
            throw LogError(
                .damaged, "The checkpoint at \(checkpoint.sequence) can't be read: \(error)")
        }
        let forked = SavedCheckpoint(sequence: checkpoint.sequence, bytes: bytes[...])
        for piece in forked.pieces() { try target.save(piece) }
    }

    private func copy(_ snapshot: SavedSnapshot) throws(LogError) {
        var offset: UInt64 = 0
        repeat {
            let bytes = try source.readSnapshot(
                of: snapshot.key, from: offset, limitBytes: Self.pieceBytes)
            guard let bytes, !bytes.isEmpty || snapshot.byteCount == 0 else {
                throw LogError(
                    .failed,
                    "The snapshot of \(snapshot.key) was replaced meanwhile. Run the command again."
                )
            }
            try target.save(SnapshotPiece(snapshot: snapshot, offset: offset, bytes: bytes))
            offset += UInt64(bytes.count)
        } while offset < snapshot.byteCount
    }

    /// Checks that every store can begin: with its creation, or with a snapshot behind which the log has every entry that
    /// concerns it. The newest snapshot is one, whatever the log has discarded.
    private func checkStates(
        of state: LogState, _ snapshots: [SavedSnapshot]
    ) throws(CommandFailure) {
        let all = try failing { () throws(LogError) in try source.snapshots() }
        var lowest = SequenceNumber.zero
        for (store, life) in state.lives where life < source.floor {
            func newest(_ snapshots: [SavedSnapshot]) -> SequenceNumber? {
                snapshots.filter {
                    $0.store == store && $0.life == life && $0.kind != .compared
                }.map(\.sequence).max()
            }
            // Without a snapshot, no entry concerns it: it has its first state.
            guard let known = newest(all) else { continue }
            let usable = newest(snapshots)
            guard usable != known, usable.map({ $0.next < source.floor }) ?? true else { continue }
            lowest = max(lowest, known)
        }
        guard lowest == .zero else { throw belowFloor(lowest) }
    }

    private func lowestCheckpoint() throws(LogError) -> SequenceNumber {
        var (lowest, through) = (source.last, source.last)
        while through > .zero, let checkpoint = try source.checkpoint(through: through) {
            lowest = checkpoint.sequence
            through = SequenceNumber(checkpoint.sequence.rawValue - 1)
        }
        return lowest
    }

    private func belowFloor(_ lowest: SequenceNumber) -> CommandFailure {
        CommandFailure(
            .notFound, code: "belowFloor",
            """
            The log can't be forked at \(last): it no longer has all that its stores were at that entry. Give --at \
            \(lowest) or higher.
            """)
    }

    private func checkInterruption() throws(CommandFailure) {
        guard isEnded() else { return }
        throw CommandFailure(
            .interrupted, "The fork was interrupted, and there is no log. Run the command again.")
    }
}
