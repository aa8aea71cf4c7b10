import ConfluxVocabulary

/// A commit, and the hash that the log has beside it.
public struct ChainedCommit: Sendable, Hashable {
    /// The commit.
    public let commit: LoggedCommit
    /// Its hash as it stands in the file; nil if there is none.
    public let hash: ChainHash?
}

/// Follows the chain of a log's commits: each has a hash of itself and of the hash before it.
///
/// Checksums find accidents, commit by commit, and whoever changes a commit can change its checksum. To
/// change one commit so that the chain still holds, somebody has to write all hashes behind it anew, and
/// then the log no longer has an *anchor* that somebody kept elsewhere (``LogAnchor``).
///
/// The chain begins at the floor: the log remembers the hash of the last commit that it gave up. A log
/// that was begun in a former format is chained from where it ended when it was upgraded.
public struct LogChain: Sendable {
    /// The number at which the chain begins. Commits before it have no hash.
    public let first: SequenceNumber
    /// The last number and the hash of the commit that was followed last. Before the first one: the
    /// number before ``first``, and what the chain begins with.
    public private(set) var end: LogAnchor

    /// - Parameters:
    ///   - first: The number at which the chain begins, 1 or more.
    ///   - hash: What is before that.
    init(from first: SequenceNumber, behind hash: ChainHash) {
        self.first = first
        end = LogAnchor(SequenceNumber(first.rawValue - 1), hash)
    }

    /// Goes on to the next commit.
    ///
    /// - Parameter next: The commit behind the last one, with its hash.
    /// - Returns: Whether that is the hash of this commit in this place. If not, the commit, its hash, or
    ///   something before them was changed; nothing behind it can be followed.
    public mutating func follow(_ next: ChainedCommit) -> Bool {
        guard next.commit.first >= first else { return next.hash == nil }
        let hash = end.hash.next(next.commit)
        guard next.hash == hash else { return false }
        end = LogAnchor(next.commit.last, hash)
        return true
    }
}
