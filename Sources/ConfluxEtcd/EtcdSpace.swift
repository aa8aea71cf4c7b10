import ConfluxVocabulary

/// The space that a log takes in etcd, with the history of its keys: asks how much is left, and has etcd give up
/// history.
struct EtcdSpace {
    /// How much is written before it is asked again.
    private static let reviewBytes = 4 << 20
    /// How old an answer may be while space is short.
    private static let reviewPause = Duration.seconds(2)
    /// How much is written, in bytes and in transactions, before history is given up: what there was then. So
    /// history goes back for twice that at most.
    private static let compactBytes = 32 << 20
    private static let compactCount = 10_000
    private let quotaBytes: Int
    private(set) var isNearlyFull = false
    private var reviewed: ContinuousClock.Instant?
    private var bytesSinceReview = 0
    private var bytesSinceCompaction = 0
    private var countSinceCompaction = 0
    /// The revision of the last change, and of the one at the last compaction.
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

    /// Something was written.
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

    /// Asks how much is left, where that may have changed.
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
        // Whatever keeps it from being told is met by the next append.
        guard let status = try? client.status() else { return false }
        let quota =
            status.quotaBytes == 0
            ? UInt64(quotaBytes) : min(status.quotaBytes, UInt64(quotaBytes))
        isNearlyFull = status.usedBytes > quota / 8 * 7
        return true
    }

    /// Has history be given up: all of it where space is short, which is awaited then.
    mutating func giveBack(_ client: any EtcdStore, isAwaited: Bool) {
        compact(client, to: isAwaited ? revision : marked, isAwaited: isAwaited)
    }

    /// Asks anew how much is left.
    ///
    /// - Returns: Whether it is known.
    mutating func reviewNow(_ client: any EtcdStore) -> Bool {
        reviewed = nil
        return review(client)
    }

    private mutating func compact(_ client: any EtcdStore, to revision: UInt64, isAwaited: Bool) {
        bytesSinceCompaction = 0
        countSinceCompaction = 0
        // What can't be given up now is given up next time; where that never succeeds, space is short.
        if revision > 0 { try? client.compact(to: revision, isAwaited: isAwaited) }
        marked = self.revision
    }
}
