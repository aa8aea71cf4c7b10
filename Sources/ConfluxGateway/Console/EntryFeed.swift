import Conflux
import ConfluxMonitoring
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Dispatch
import Synchronization

/// The entries of the log as they are ordered, for people who watch: a sample, once there are many.
///
/// Four times a second, a *batch* is written for all readers who want the same: at most ``entriesMax`` entries, and from
/// which number through which one it was chosen. So a reader knows what was left out, and a slow one misses batches and
/// delays nobody. While nobody reads, nothing happens.
///
/// Safe on any thread.
final class EntryFeed: Sendable {
    /// The most entries of a batch. *At the bound* every other one is left out, or two of three, and so on.
    static let entriesMax = 40
    /// How many batches are kept for readers who are slower.
    static let batchesMax = 16
    private static let interval = DispatchTimeInterval.milliseconds(250)

    /// What a reader wants to see; nil for everything.
    typealias Filter = Target?

    private struct Channel {
        var readers: [ObjectIdentifier: HTTPExchange] = [:]
        var batches: [[UInt8]] = []
        /// The index of the next batch. Indices never repeat.
        var end: UInt64 = 0
        /// Up to where it has looked at the entries.
        var through: SequenceNumber
    }

    private struct State {
        var channels: [Filter: Channel] = [:]
        /// When all readers were woken last, whether there was something for them or not.
        var beatAt = ContinuousClock.now
        /// Whether another look at the entries is due.
        var isTicking = false
    }

    private let ring: CommitRing
    private let stores: @Sendable () -> [any AnyServedStore]?
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "conflux-entries")

    init(_ ring: CommitRing, stores: @escaping @Sendable () -> [any AnyServedStore]?) {
        self.ring = ring
        self.stores = stores
    }

    /// Whether it looks at the entries, four times a second.
    var isTicking: Bool { state.withLock(\.isTicking) }

    /// Adds a reader. It begins with the newest entries that are kept.
    func stream(for reader: HTTPExchange, of filter: Filter) -> EntryStream {
        let commits = ring.commits(behind: .zero)
        let through = commits.map(\.last).max() ?? .zero
        let first = batch(filter, of: commits, isBeginning: true)
        let (place, isFirst) = state.withLock { state in
            state.channels[filter, default: Channel(through: through)].readers[
                ObjectIdentifier(reader)] = reader
            defer { state.isTicking = true }
            return (state.channels[filter]?.end ?? 0, !state.isTicking)
        }
        if isFirst { tickLater() }
        reader.whenOver { [weak self, id = ObjectIdentifier(reader)] in
            self?.state.withLock { state in
                state.channels[filter]?.readers[id] = nil
                if state.channels[filter]?.readers.isEmpty == true { state.channels[filter] = nil }
            }
        }
        return EntryStream(of: self, filter, beginning: first, from: place)
    }

    /// The batches from an index on, and the index behind them. Some may be discarded.
    fileprivate func batches(_ filter: Filter, from place: UInt64) -> ([[UInt8]], UInt64) {
        state.withLock { state in
            guard let channel = state.channels[filter] else { return ([], place) }
            let count = min(Int(channel.end - min(place, channel.end)), channel.batches.count)
            return (channel.batches.suffix(count), channel.end)
        }
    }

    private func tickLater() {
        queue.asyncAfter(deadline: .now() + Self.interval) { [weak self] in self?.tick() }
    }

    private func tick() {
        let isWatched = state.withLock { state in
            state.isTicking = !state.channels.isEmpty
            return state.isTicking
        }
        guard isWatched else { return }
        defer { tickLater() }
        let idle = state.withLock { state -> [HTTPExchange] in
            guard ContinuousClock.now - state.beatAt >= StreamHub.beatInterval else { return [] }
            state.beatAt = .now
            return state.channels.values.flatMap { Array($0.readers.values) }
        }
        for reader in idle { reader.wake() }
        let wanted = state.withLock { $0.channels.mapValues(\.through) }
        for (filter, through) in wanted {
            let commits = ring.commits(behind: through)
            guard let last = commits.map(\.last).max() else { continue }
            let bytes = batch(filter, of: commits, isBeginning: false)
            let readers = state.withLock { state -> [HTTPExchange] in
                state.channels[filter]?.through = last
                guard let bytes, let count = state.channels[filter]?.batches.count else {
                    return []
                }
                if count == Self.batchesMax { state.channels[filter]?.batches.removeFirst() }
                state.channels[filter]?.batches.append(bytes)
                state.channels[filter]?.end += 1
                return state.channels[filter].map { Array($0.readers.values) } ?? []
            }
            for reader in readers { reader.wake() }
        }
    }

    // MARK: Batches

    private typealias Found = (sequence: SequenceNumber, entry: LogEntry, commit: Commit)

    /// Chooses among the entries of some commits, and writes the event.
    ///
    /// - Returns: nil if none of them is wanted.
    func batch(_ filter: Filter, of commits: [Commit], isBeginning: Bool) -> [UInt8]? {
        var found: [Found] = []
        for commit in commits {
            commit.forEachEntry { sequence, entry in
                if EntryWriter.concerns(filter, entry) { found.append((sequence, entry, commit)) }
            }
        }
        // Entries with which stores caught up come out of order, and more than once.
        found.sort { $0.sequence < $1.sequence }
        found = zip(found, [nil] + found.map { Optional($0.sequence) }).compactMap {
            found, before in
            found.sequence == before ? nil : found
        }
        guard let first = found.first?.sequence, let last = found.last?.sequence else {
            return isBeginning ? EntryWriter.event([], left: 0, .zero, .zero) : nil
        }
        // A reader who begins wants the newest ones.
        let stride = max(1, (found.count + Self.entriesMax - 1) / Self.entriesMax)
        let chosen =
            isBeginning
            ? Array(found.suffix(Self.entriesMax))
            : found.indices.filter { $0 % stride == 0 }.map { found[$0] }
        let served = Dictionary((stores() ?? []).map { ($0.name, $0) }) { first, _ in first }
        let left = isBeginning ? 0 : found.count - chosen.count
        return EntryWriter.event(
            chosen.map { EntryWriter.json($0.entry, at: $0.sequence, in: $0.commit, served) },
            left: left, first, last)
    }
}

/// The entries for one reader, as server-sent events.
// Sendable: only one thread uses it at a time.
final class EntryStream: HTTPStream, @unchecked Sendable {
    private let feed: EntryFeed
    private let filter: EntryFeed.Filter
    private var beginning: [UInt8]?
    private var place: UInt64
    private var lastAt = ContinuousClock.now

    fileprivate init(
        of feed: EntryFeed, _ filter: EntryFeed.Filter, beginning: [UInt8]?, from place: UInt64
    ) {
        (self.feed, self.filter, self.beginning, self.place) = (feed, filter, beginning, place)
    }

    func next() -> HTTPPart {
        if let first = beginning {
            beginning = nil
            return .bytes([first])
        }
        let (batches, end) = feed.batches(filter, from: place)
        place = end
        if !batches.isEmpty {
            lastAt = .now
            return .bytes(batches)
        }
        guard ContinuousClock.now - lastAt >= StreamHub.beatInterval else { return .none }
        lastAt = .now
        // A comment shows that the connection stands, here and there.
        return .bytes([Array(": \n\n".utf8)])
    }
}
