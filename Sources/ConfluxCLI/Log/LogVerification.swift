import ConfluxHashing
import ConfluxLog
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// Reads a log on disk from its beginning, and checks the same things as a sequencer that starts:
/// every checksum, that no number is missing, that each commit follows from those before it, and
/// every snapshot. It also follows the chain of hashes, which reveals deliberate changes.
///
/// Only a checkpoint tells what was before the floor. The check begins with the oldest readable
/// checkpoint, and all later commits must follow from it. A log above floor 1 that has no readable
/// checkpoint can't be served.
struct LogVerification {
    let log: LogID
    let last: SequenceNumber
    private(set) var floor: SequenceNumber
    private(set) var commitCount = 0
    private(set) var epoch = Epoch.none
    private(set) var snapshotCount = 0
    /// The first number with a hash; above `last` if there is none.
    private(set) var chained = SequenceNumber.zero
    /// The end of the chain; nil if there is no chain.
    private(set) var anchor: LogAnchor?
    private let expected: LogAnchor?
    /// The log's hash at the number of `expected`.
    private var found: ChainHash?

    /// How many bytes are read at once.
    private static let pieceBytes = 8 << 20
    /// How often the check begins again because the sequencer truncated the log meanwhile.
    private static let attemptsMax = 10

    /// - Parameters:
    ///   - file: The log.
    ///   - expected: An anchor that the log must have; nil if none is known.
    ///   - isEnded: Called now and then; true ends the work.
    ///   - progress: Called now and then with the number of checked entries and their total.
    /// - Throws: ``CommandFailure``: what is wrong and where, or that the work was ended.
    init(
        of file: SQLiteLogFile, expecting expected: LogAnchor? = nil,
        unless isEnded: () -> Bool = { false }, progress: (Int, Int) -> Void = { _, _ in }
    ) throws(CommandFailure) {
        self.expected = expected
        log = file.id
        last = file.last
        floor = file.floor
        do {
            var attempts = 0
            while let risen = try readEntries(of: file, unless: isEnded, progress) {
                floor = risen
                attempts += 1
                guard attempts < Self.attemptsMax else {
                    throw CommandFailure(
                        .logFailed, "The log was truncated while it was checked. Try again.")
                }
            }
            try readSnapshots(of: file, unless: isEnded)
            try checkAnchor()
        } catch let failure as CommandFailure {
            throw failure
        } catch let error as LogError {
            throw CommandFailure(.logFailed, code: error.code.rawValue, error.message)
        } catch {
            throw Self.damaged("The log is not what a sequencer wrote: \(error)")
        }
    }

    /// - Returns: The log's new floor, if the log was truncated meanwhile; nil if all entries are whole.
    private mutating func readEntries(
        of file: SQLiteLogFile, unless isEnded: () -> Bool, _ progress: (Int, Int) -> Void
    ) throws -> SequenceNumber? {
        commitCount = 0
        epoch = .none
        found = nil
        var chain = try file.chain()
        note(chain)
        var logState = try beginning(of: file)
        var next = floor
        while next <= last {
            try Self.check(isEnded)
            let piece = try file.readChained(
                from: next, through: last, limitBytes: Self.pieceBytes)
            for link in piece {
                let logged = link.commit
                // A gap means only that the log was truncated meanwhile.
                if logged.first > next { return logged.first }
                guard chain.follow(link) else { throw Self.unchained(logged) }
                note(chain)
                do {
                    let commit = try Commit.decode(body: logged.bytes)
                    guard commit.log == log, commit.first == next, commit.last == logged.last,
                        commit.epoch == logged.epoch,
                        commit.predecessor == epoch || next == floor
                    else { throw Misfit() }
                    if commit.first > logState.last {
                        try logState.apply(commit, byteCount: logged.bytes.count)
                    } else if commit.last > logState.last {
                        throw Misfit()
                    }
                    epoch = commit.epoch
                } catch {
                    throw Self.damaged("Entry \(next) is not what a sequencer wrote: \(error)")
                }
                next = logged.last.next
                commitCount += 1
            }
            progress(Int(next.rawValue - floor.rawValue), Int(last.next.rawValue - floor.rawValue))
        }
        return nil
    }

    /// Records how far the chain was followed.
    private mutating func note(_ chain: LogChain) {
        chained = chain.first
        anchor = chain.end.number >= chain.first ? chain.end : nil
        if chain.end.number == expected?.number { found = chain.end.hash }
    }

    /// Checks whether the log, which is whole, has the expected anchor.
    private func checkAnchor() throws(CommandFailure) {
        guard let expected, found != expected.hash else { return }
        let number = expected.number
        if number > last {
            throw CommandFailure(
                .logFailed, code: "anchorAboveEnd",
                "The log ends at entry \(last), and the anchor is of entry \(number): the log has lost its "
                    + "end, or it is an older copy. What it has is intact.")
        }
        if number.next < floor {
            throw CommandFailure(
                .logFailed, code: "anchorBelowFloor",
                "The log begins at entry \(floor), and the anchor is of entry \(number), which "
                    + "the log has discarded, so it can't be checked. Give the anchor of a later "
                    + "entry.")
        }
        throw CommandFailure(
            .logFailed, code: "anchorDiffers",
            "The log does not have the anchor of entry \(number): that entry or an earlier one "
                + "has changed since, or this is another log. Compare it with your backups.")
    }

    /// The state at the log's floor, or at the oldest readable checkpoint above it.
    private func beginning(of file: SQLiteLogFile) throws -> LogState {
        guard floor > SequenceNumber(1) else { return LogState(log: log) }
        var oldest: LogState?
        var through = last
        var reason = "there is none"
        while through.next >= floor, through > .zero {
            do throws(LogError) {
                guard let found = try file.checkpoint(through: through) else { break }
                through = SequenceNumber(found.sequence.rawValue - 1)
                guard found.sequence.next >= floor else { break }
                do {
                    let logState = try LogState(checkpoint: found.bytes)
                    guard logState.log == log, logState.last == found.sequence else {
                        throw Misfit()
                    }
                    oldest = logState
                } catch {
                    reason = "the one at \(found.sequence): \(error)"
                }
            } catch {
                reason = error.message
                guard error.code == .damaged, let number = error.numbers?.lowerBound.rawValue,
                    number > 0
                else { break }
                through = SequenceNumber(min(number, through.rawValue) - 1)
            }
        }
        guard let oldest else {
            throw Self.damaged(
                "The log begins at entry \(floor), and no checkpoint says what was before: "
                    + "\(reason). Restore it from a backup.")
        }
        return oldest
    }

    private mutating func readSnapshots(
        of file: SQLiteLogFile, unless isEnded: () -> Bool
    ) throws {
        for snapshot in try file.snapshots() {
            var hasher = DigestHasher()
            var isThere = true
            while hasher.byteCount < snapshot.byteCount {
                try Self.check(isEnded)
                let bytes = try file.readSnapshot(
                    of: snapshot.key, from: hasher.byteCount, limitBytes: Self.pieceBytes)
                // The sequencer has retired it meanwhile.
                guard let bytes, !bytes.isEmpty else {
                    isThere = false
                    break
                }
                hasher.update(bytes)
            }
            guard isThere else { continue }
            if hasher.finish() != snapshot.digest, try file.snapshots().contains(snapshot) {
                throw Self.damaged(
                    "The snapshot of \(snapshot.key) does not match its digest "
                        + "\(snapshot.digest). The entries of the log are intact.")
            }
            snapshotCount += 1
        }
    }

    private struct Misfit: Error, CustomStringConvertible {
        let description = "it does not follow from what is before it"
    }

    private static func unchained(_ commit: LoggedCommit) -> CommandFailure {
        let words =
            commit.first < commit.last
            ? "Entries \(commit.first) to \(commit.last) do" : "Entry \(commit.first) does"
        return damaged(
            "\(words) not have the hash that follows from the entries before: something was "
                + "changed there after it was written. Everything before matches its hashes. "
                + "Restore the log from a backup.")
    }

    private static func check(_ isEnded: () -> Bool) throws(CommandFailure) {
        if isEnded() {
            throw CommandFailure(
                .interrupted,
                "The check was interrupted, so it says nothing about the log. Run it again.")
        }
    }

    private static func damaged(_ message: String) -> CommandFailure {
        CommandFailure(.logFailed, code: LogError.Code.damaged.rawValue, message)
    }

    var fields: JSONFields {
        [
            "anchor": anchor?.description, "chained": chained, "commits": commitCount,
            "epoch": epoch, "expected": expected?.description, "floor": floor, "last": last,
            "log": log, "snapshots": snapshotCount,
        ]
    }

    /// A line with the content, and one with the anchor.
    var text: String {
        let content =
            "entries \(floor) to \(last) of log \(log), in \(commitCount) commits up to epoch \(epoch), "
            + "and \(snapshotCount) snapshots"
        guard let anchor else {
            return "\(content)\nno anchor: an older version wrote these entries, without hashes"
        }
        let gap = chained > floor ? "; entries before \(chained) have no hashes" : ""
        return "\(content)\(gap)\nanchor: \(anchor)"
    }
}
