import ConfluxVocabulary

/// Reads the commits of a log on disk, with their hashes. One thread at a time owns it.
protocol CommitReader {
    /// Reads commits like `LogReader.read(from:through:limitBytes:)`; `from` is the floor or above.
    ///
    /// - Throws: `damaged`, `failed`.
    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [ChainedCommit]
}
