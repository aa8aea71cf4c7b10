import ConfluxLog
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// Reads a log on disk from its beginning, and checks it as a sequencer does that starts without a
/// checkpoint: every checksum, that no number is missing, and that each commit follows from those
/// before it.
struct LogVerification {
    let log: LogID
    let last: SequenceNumber
    private(set) var commitCount = 0
    private(set) var epoch = Epoch.none

    /// How much is read at once.
    private static let pieceBytes = 8 << 20

    /// - Parameters:
    ///   - file: The log.
    ///   - isEnded: Asked now and then; true ends the work.
    /// - Throws: What is wrong, and where; or that the wait was ended.
    init(
        of file: SQLiteLogFile, unless isEnded: () -> Bool = { false }
    ) throws(CommandFailure) {
        log = file.id
        last = file.last
        var fold = LogFold(log: file.id)
        while fold.last < last {
            if isEnded() { throw CommandFailure(.interrupted, "The check was ended.") }
            let next = fold.last.next
            do {
                let commits = try file.read(
                    from: next, through: last, limitBytes: Self.pieceBytes)
                for logged in commits {
                    let commit = try Commit.decode(body: logged.bytes)
                    try fold.apply(commit, byteCount: logged.bytes.count)
                    epoch = commit.epoch
                    commitCount += 1
                }
            } catch let error as LogError {
                throw CommandFailure(.logFailed, code: error.code.rawValue, error.message)
            } catch {
                throw CommandFailure(
                    .logFailed, code: LogError.Code.damaged.rawValue,
                    "Entry \(fold.last.next) is not what a sequencer wrote: \(error)")
            }
        }
    }

    var json: JSONValue {
        [
            "commits": .number(UInt64(commitCount)), "epoch": .number(epoch),
            "last": .number(last), "log": .string(log.description),
        ]
    }

    var text: String {
        "entries 1 to \(last) of log \(log), in \(commitCount) commits up to epoch \(epoch)"
    }
}
