import ConfluxLog
import ConfluxVocabulary

/// Reads a log on etcd over connections of its own. Reads and appends don't wait for each other.
final class EtcdLogReader: LogReader {
    /// nil once closed.
    private var reading: EtcdReading?

    init(_ settings: EtcdLogSettings) throws(LogError) {
        do throws(EtcdFailure) {
            reading = try EtcdReading(settings)
        } catch {
            throw LogError(error, "Opening the log for reading")
        }
    }

    private func open() throws(LogError) -> EtcdReading {
        guard let reading else { throw .closed }
        return reading
    }

    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        try open().read(from: from, through: last, limitBytes: limitBytes)
    }

    func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        try open().checkpoint(through: last)
    }

    func snapshot(of key: SavedSnapshot.Key) throws(LogError) -> SavedSnapshot? {
        try open().place(of: key)?.snapshot
    }

    func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        try open().readSnapshot(of: key, from: offset, limitBytes: limitBytes)
    }

    func close() {
        reading = nil
    }
}
