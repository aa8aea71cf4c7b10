import ConfluxVocabulary

/// A commit, and the hash that is stored with it.
public struct ChainedCommit: Sendable, Hashable {
    /// The commit.
    public let commit: LoggedCommit
    /// Its hash as stored in the file; nil if it has none.
    public let hash: ChainHash?
}

/// Follows the chain of a log's commits. Each commit has a hash that covers the commit and the hash before
/// it.
///
/// Checksums detect accidents in single commits, but somebody who changes a commit can change its checksum
/// too. To change a commit without breaking the chain, they have to rewrite all hashes after it. Then the log
/// no longer matches an *anchor* that was kept elsewhere (``LogAnchor``).
///
/// The chain begins at the floor: the log keeps the hash of the last commit that it discarded.
public struct LogChain: Sendable {
    /// The number at which the chain begins. Commits before it have no hash.
    public let first: SequenceNumber
    /// The last number and the hash of the last commit that was followed. Before the first one: the number
    /// before ``first``, and the hash with which the chain begins.
    public private(set) var end: LogAnchor

    /// - Parameters:
    ///   - first: The number at which the chain begins, 1 or more.
    ///   - hash: The hash before that number.
    init(from first: SequenceNumber, behind hash: ChainHash) {
        self.first = first
        end = LogAnchor(SequenceNumber(first.rawValue - 1), hash)
    }

    /// Follows the chain to the next commit.
    ///
    /// - Parameter next: The commit after the last one, with its hash.
    /// - Returns: Whether the hash fits this commit in this place. If not, the commit, its hash, or something
    ///   before them was changed, and the chain can't be followed any further.
    public mutating func follow(_ next: ChainedCommit) -> Bool {
        guard next.commit.first >= first else { return next.hash == nil }
        let hash = end.hash.next(next.commit)
        guard next.hash == hash else { return false }
        end = LogAnchor(next.commit.last, hash)
        return true
    }
}
