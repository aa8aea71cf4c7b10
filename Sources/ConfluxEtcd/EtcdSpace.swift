import ConfluxVocabulary

/// Tracks the space that a log takes in etcd, with the history of its keys: checks how much is left, and
/// compacts history.
struct EtcdSpace {
    /// How many bytes to write before the next check.
    private static let reviewBytes = 4 << 20
    /// How old the last check may be while space is short.
    private static let reviewPause = Duration.seconds(2)
    /// How many bytes, or transactions, to write between two compactions. Each compacts the history up to the
    /// compaction before it, so history goes back over at most two such intervals.
    private static let compactBytes = 32 << 20
    private static let compactCount = 10_000
    private let quotaBytes: Int
    private(set) var isNearlyFull = false
    private var reviewed: ContinuousClock.Instant?
    private var bytesSinceReview = 0
    private var bytesSinceCompaction = 0
    private var countSinceCompaction = 0
    /// The revision of the last change, and the one at the last compaction.
    private var revision: UInt64 = 0
    private var marked: UInt64 = 0

    init(quotaBytes: Int) {
        self.quotaBytes = quotaBytes
    }

    mutating func begin(at revision: UInt64) {
        self.revision = revision
        marked = revision
        reviewed = nil
    }

    /// Notes a write.
    mutating func wrote(_ byteCount: Int, at revision: UInt64, _ client: any EtcdStore) {
        self.revision = max(self.revision, revision)
        bytesSinceReview += byteCount
        bytesSinceCompaction += byteCount
        countSinceCompaction += 1
        guard
            bytesSinceCompaction >= Self.compactBytes || countSinceCompaction >= Self.compactCount
        else { return }
        compact(client, to: marked, isAwaited: false)
    }

    /// Checks how much space is left, if that may have changed.
    ///
    /// - Returns: Whether it is known.
    @discardableResult
    mutating func review(_ client: any EtcdStore) -> Bool {
        let now = ContinuousClock.now
        let isOld = isNearlyFull && reviewed.map { now - $0 >= Self.reviewPause } ?? true
        guard reviewed == nil || bytesSinceReview >= Self.reviewBytes || isOld else {
            return true
        }
        bytesSinceReview = 0
        reviewed = now
        // If this fails, the next append meets the same error.
        guard let status = try? client.status() else { return false }
        let quota =
            status.quotaBytes == 0
            ? UInt64(quotaBytes) : min(status.quotaBytes, UInt64(quotaBytes))
        isNearlyFull = status.usedBytes > quota / 8 * 7
        return true
    }

    /// Compacts history. If space is short, compacts all of it and waits.
    mutating func giveBack(_ client: any EtcdStore, isAwaited: Bool) {
        compact(client, to: isAwaited ? revision : marked, isAwaited: isAwaited)
    }

    /// Checks again how much space is left.
    ///
    /// - Returns: Whether it is known.
    mutating func reviewNow(_ client: any EtcdStore) -> Bool {
        reviewed = nil
        return review(client)
    }

    private mutating func compact(_ client: any EtcdStore, to revision: UInt64, isAwaited: Bool) {
        bytesSinceCompaction = 0
        countSinceCompaction = 0
        // If it fails, it is tried again later. If it always fails, space becomes short.
        if revision > 0 { try? client.compact(to: revision, isAwaited: isAwaited) }
        marked = self.revision
    }
}
