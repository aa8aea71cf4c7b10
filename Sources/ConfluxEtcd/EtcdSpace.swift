import ConfluxVocabulary
import Synchronization

/// Tracks the space that a log takes in etcd, with the history of its keys, and gives back what is not needed:
/// compacts history, defragments members, and clears the alarm `NOSPACE`.
///
/// etcd enforces its quota on the size of a member's file, which never shrinks by itself: pages that are free are
/// used again. So there are two sizes, the file's and that of the pages in use. What counts is how much is in use,
/// until the file is near the quota. Then a member is defragmented (``EtcdRelief``).
struct EtcdSpace {
    /// How many bytes to write before the next check, at most.
    private static let reviewBytes: UInt64 = 4 << 20
    /// How old the last check may be while space is short.
    private static let reviewPause = Duration.seconds(2)
    /// How often all members are asked. Each has a file of its own.
    private static let membersPause = Duration.seconds(10)
    /// How many bytes, or transactions, to write between two compactions, at most. Each compacts the history up to
    /// the compaction before it, so history goes back over at most two such intervals.
    private static let compactBytes: UInt64 = 32 << 20
    private static let compactCount = 10_000
    /// How long to wait after a member was defragmented, or could not be, before that is tried again.
    private static let reliefPause = Duration.seconds(60)
    /// When each member was last defragmented. Logs of this process that are opened later know it, too.
    private static let defragmented = Mutex<[String: ContinuousClock.Instant]>([:])

    /// The lowest quota that is known: that of the settings, of a member that reports its own, or the size at which
    /// a member refused to write.
    private var quotaBytes: UInt64
    private var members: [EtcdMember] = []
    private var reviewed: ContinuousClock.Instant?
    private var askedAll: ContinuousClock.Instant?
    private var disarmed: ContinuousClock.Instant?
    /// Why a member could not be defragmented, or the alarm not be cleared.
    private var failure: EtcdFailure?
    private var bytesSinceReview: UInt64 = 0
    private var bytesSinceCompaction: UInt64 = 0
    private var countSinceCompaction = 0
    /// The revision of the last change, and the one at the last compaction.
    private var revision: UInt64 = 0
    private var marked: UInt64 = 0

    private var reviewBytes: UInt64 { min(Self.reviewBytes, quotaBytes / 32) }
    private var compactBytes: UInt64 { min(Self.compactBytes, quotaBytes / 16) }

    init(quotaBytes: Int) {
        self.quotaBytes = UInt64(quotaBytes)
    }

    mutating func begin(at revision: UInt64) {
        self.revision = revision
        marked = revision
        reviewed = nil
    }

    // MARK: How much is left

    private var usedBytes: UInt64 {
        (members.map(\.status.usedBytes).max() ?? 0) + bytesSinceReview
    }
    private var fileBytes: UInt64 { members.map(\.status.fileBytes).max() ?? 0 }

    /// How much is used, as of the last check.
    var space: LogSpace {
        var space = LogSpace(usedBytes: usedBytes, of: quotaBytes)
        guard
            EtcdRelief.isNear(fileBytes, quotaBytes) || members.contains(where: \.status.isAlarmed)
        else { return space }
        // etcd refuses to write, or is about to.
        space.room = .nearlyFull
        let addresses = members.map(\.address).joined(separator: ",")
        let why = failure.map { " (the sequencer tried: \($0.message))" } ?? ""
        space.advice =
            "etcd's largest file has \(fileBytes) of \(quotaBytes) bytes, and at most \(usedBytes) are in use\(why). "
            + "Run etcdctl --endpoints=\(addresses) defrag, and then etcdctl alarm disarm; if more is in use than etcd "
            + "may have, raise its --quota-backend-bytes"
        return space
    }

    /// Whether so many bytes can be written without using the last of the quota.
    func hasRoom(for bytes: Int) -> Bool {
        // etcd compares the size of its file with the quota, even if the write uses free pages.
        usedBytes + UInt64(bytes) <= quotaBytes / 16 * 15
            && fileBytes + UInt64(min(bytes, EtcdRecord.valueBytesMax)) < quotaBytes
    }

    /// Notes a write.
    mutating func wrote(_ byteCount: Int, at revision: UInt64, _ client: any EtcdStore) {
        self.revision = max(self.revision, revision)
        bytesSinceReview += UInt64(byteCount)
        bytesSinceCompaction += UInt64(byteCount)
        countSinceCompaction += 1
        guard
            bytesSinceCompaction >= compactBytes || countSinceCompaction >= Self.compactCount
        else { return }
        compact(client, to: marked, isAwaited: false)
    }

    /// Checks how much space is left, if that may have changed, and frees what can be freed.
    ///
    /// - Returns: Whether it is known.
    @discardableResult
    mutating func review(_ client: any EtcdStore) -> Bool {
        let now = ContinuousClock.now
        let isShort = space.room == .nearlyFull
        let isOld = isShort && reviewed.map { now - $0 >= Self.reviewPause } ?? true
        guard reviewed == nil || bytesSinceReview >= reviewBytes || isOld else { return true }
        guard ask(client, at: now, all: isShort) else { return false }
        if space.room == .nearlyFull, !isShort { _ = ask(client, at: now, all: true) }
        if space.room == .nearlyFull, revision > marked {
            compact(client, to: revision, isAwaited: false)
        }
        relieve(client, at: now)
        return true
    }

    /// Asks the member that answers, and at times all of them.
    private mutating func ask(
        _ client: any EtcdStore, at now: ContinuousClock.Instant, all: Bool
    ) -> Bool {
        let asksAll = all || askedAll.map { now - $0 >= Self.membersPause } ?? true
        let found = asksAll ? client.members() : client.nextMember().map { [$0] } ?? []
        // If nobody answers, the next append meets the same error.
        guard !found.isEmpty else { return false }
        reviewed = now
        bytesSinceReview = 0
        if asksAll {
            askedAll = now
            members = found
        } else {
            members = members.filter { $0.address != found[0].address } + found
        }
        for member in members where member.status.quotaBytes > 0 {
            quotaBytes = min(quotaBytes, member.status.quotaBytes)
        }
        return true
    }

    // MARK: Freeing space

    /// etcd has refused to write. Frees what can be freed.
    ///
    /// - Returns: Whether etcd takes writes again, as far as is known.
    mutating func wasRefused(_ client: any EtcdStore) -> Bool {
        let now = ContinuousClock.now
        guard ask(client, at: now, all: true) else { return false }
        revision = max(revision, members.map(\.status.revision).max() ?? 0)
        compact(client, to: revision, isAwaited: true)
        guard ask(client, at: now, all: true) else { return false }
        // The quota may be lower than it was said to be.
        if let most = members.filter(\.status.isAlarmed).map(\.status.fileBytes).max() {
            quotaBytes = min(quotaBytes, max(most, 1 << 20))
        }
        // What was compacted counts as free only after the next write, so it is unknown how much is free.
        disarmed = nil
        if relieve(client, at: now, isRefused: true) { relieve(client, at: now, isRefused: false) }
        return !members.isEmpty && !members.contains(where: \.status.isAlarmed)
    }

    /// Does what frees most: one member is defragmented at a time.
    ///
    /// - Returns: Whether something was done.
    @discardableResult
    private mutating func relieve(
        _ client: any EtcdStore, at now: ContinuousClock.Instant, isRefused: Bool = false
    ) -> Bool {
        let resting = Self.defragmented.withLock { times in
            times = times.filter { now - $0.value < Self.reliefPause }
            return Set(times.keys)
        }
        let relief = EtcdRelief(
            members, quotaBytes: quotaBytes, resting: resting, isRefused: isRefused)
        do throws(EtcdFailure) {
            switch relief {
            case .defragment(let member):
                Self.defragmented.withLock { $0[member] = now }
                try client.defragment(member)
            case .disarm:
                guard disarmed.map({ now - $0 >= Self.reliefPause }) ?? true else { return false }
                disarmed = now
                try client.disarm()
            case .none: return false
            }
            failure = nil
        } catch {
            failure = error
            return false
        }
        return ask(client, at: ContinuousClock.now, all: true)
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

/// What to do about etcd's files next. Pure: it depends only on what the members report.
package enum EtcdRelief: Equatable {
    /// Rewrite the file of this member without its free pages. The member does not answer meanwhile.
    case defragment(String)
    /// Clear the alarm `NOSPACE`.
    case disarm
    case none

    /// Whether a file is so near the quota that etcd is about to refuse writes.
    static func isNear(_ fileBytes: UInt64, _ quotaBytes: UInt64) -> Bool {
        fileBytes > quotaBytes / 16 * 15
    }

    /// Decides from what the members report.
    ///
    /// A member is defragmented if its file is above 13 sixteenths of the quota, and a quarter of it or more is
    /// free. The leader is the last one, since all wait for it. The alarm is cleared once no file is near the quota:
    /// otherwise the next write raises it again.
    ///
    /// - Parameters:
    ///   - members: The members that answer.
    ///   - quotaBytes: The quota for a file.
    ///   - resting: The members that were defragmented a short time ago.
    ///   - isRefused: Whether etcd has refused to write, so that it is unknown how much is free.
    package init(
        _ members: [EtcdMember], quotaBytes: UInt64, resting: Set<String> = [],
        isRefused: Bool = false
    ) {
        let due = members.filter { member in
            let status = member.status
            let isWorthwhile = status.usedBytes <= status.fileBytes / 4 * 3
            return status.fileBytes > quotaBytes / 16 * 13 && (isWorthwhile || isRefused)
                && !resting.contains(member.address)
        }
        if let member = due.first(where: { !$0.status.isLeader }) ?? due.first {
            self = .defragment(member.address)
        } else if members.contains(where: \.status.isAlarmed),
            !members.contains(where: { Self.isNear($0.status.fileBytes, quotaBytes) })
        {
            self = .disarm
        } else {
            self = .none
        }
    }
}
