/// Every bound of the sequencer, in one validated value.
public struct SequencerSettings: Sendable, Hashable {
    /// The most bytes of one payload. Default: 1 MiB.
    public var payloadBytesMax: UInt32 = 1 << 20
    /// The most bytes of one batch. A batch holds at least one payload of the largest size.
    public var batchBytesMax: UInt32 = (1 << 20) + (1 << 16)
    /// The most bytes that one node may have without an outcome (rule 27). More are discarded.
    public var windowBytes: UInt32 = 4 << 20
    /// The most bytes that gather for one append. Batches above it are discarded with `expected`.
    public var commitBytesMax: UInt32 = 32 << 20
    /// A commit that has so many bytes gets no further batch: the next one begins. So each is one
    /// message of the feed, of at most this or one batch; a store's first state that is larger is
    /// announced by a beat, and fetched. What waits for a subscriber that does not read is bounded in
    /// bytes by this and the number of messages in its queue. Default: 256 KiB, more than gathers
    /// while many small actions come.
    public var feedCommitBytesMax: UInt32 = 256 << 10
    /// The most outcomes that are kept for a node that never says it has them.
    public var unsettledOutcomesMax: Int = 1 << 16
    /// The most bytes of the state that an opener brings along.
    public var initialStateBytesMax: UInt32 = 16 << 20
    /// The most bytes of commits in one answer to a fetch, but for one commit at least. It is small,
    /// so that what is sent and applied meanwhile waits for little.
    public var fetchBytesMax: UInt32 = 256 << 10
    /// The most answers to fetches and loads that the log reads for at once. Others wait for the turn
    /// of who asked, one node after the other. One thread reads: what more it had read would stand in
    /// front of receipts at the socket.
    public var readsMax: Int = 1
    /// The most sessions remembered, at most ``sessionsMost``. The one that left first is forgotten
    /// for a new one.
    public var sessionsMax: Int = 10_000
    /// The most of them that belong to one key, unless its rights say otherwise. Its own that left
    /// first is forgotten for a new one.
    public var sessionsPerKeyMax: Int = 1_000
    /// The most visits remembered, at most ``visitsMost``. The oldest is forgotten for a new one.
    public var visitsMax: Int = 4_096
    /// The most connections of observers and visitors.
    public var observersMax: Int = 1_000
    /// The most stores.
    public var storesMax: Int = 20_000
    /// The most bytes of first states held in memory, of all stores.
    public var initialStatesBytesMax: Int = 512 << 20
    /// The most names of states known, hosted or seen in the log.
    public var statesMax: Int = 4_096
    /// The most questions under way at once.
    public var questionsMax: Int = 4_096
    /// The most barriers under way at once, of all nodes. A further one fails, and may be asked again.
    public var barriersMax: Int = 4_096
    /// The longest that a question waits for its answers.
    public var questionPatienceMax: Duration = .seconds(60)
    /// A replica that has this many entries less than the log lags (rule 28).
    public var lagEntriesMax: UInt64 = 1_000_000
    /// For how long a replica that lags slows admission at most. Then it is stuck, and counts for
    /// nothing until it has caught up.
    public var slowdownMax: Duration = .seconds(5)
    /// The most bytes of batches admitted in one ``beatInterval`` while a majority of the live
    /// replicas lags, but for one batch at least. More are discarded with `expected`.
    public var slowBytesPerBeat: UInt32 = 256 << 10
    /// The longest time between two messages of the feed (rule 6).
    public var beatInterval: Duration = .milliseconds(100)
    /// A node has left when it was silent for this long.
    public var silenceMax: Duration = .seconds(10)
    /// How long a hello, and what is said for a session that is gone, do not count as sent in vain when a tenure
    /// has begun: nodes still speak to the one before, and all say hello (rule 45).
    public var wasteGrace: Duration = .seconds(10)
    /// A session is forgotten when its node has been away for this long (rule 10).
    public var forgetAfter: Duration = .seconds(86_400)
    /// The same for a keyed session, which somebody means to take up again (rule 11).
    public var keyedSessionsKeptFor: Duration = .seconds(7 * 86_400)
    /// How long the holder of a name, or of a key, has to answer when another process wants it
    /// (rules 10 and 11).
    public var nameInquiryMax: Duration = .seconds(1)
    /// The least bytes of log, of what concerns a store, between two of its digest points (rule 18).
    public var digestBytesMin: UInt64 = 256 << 10
    /// The same, as a multiple of the size of the store's state.
    public var digestRatioMin: UInt64 = 16
    /// How long replicas have to say what their state is, before those that did decide.
    public var votePatience: Duration = .seconds(10)
    /// The least bytes of log, of what concerns a store, between two of its snapshots (rule 19).
    public var snapshotBytesMin: UInt64 = 4 << 20
    /// The largest state that a snapshot is taken of. *At the bound* the log is kept for the store.
    public var snapshotBytesMax: UInt64 = 1 << 30
    /// The most bytes of one part of a snapshot, in either direction.
    public var snapshotPartBytesMax: UInt32 = 256 << 10
    /// How long a replica has to answer with a part, before another one is asked.
    public var snapshotPatience: Duration = .seconds(2)
    /// The most snapshots on their way to the log at once. Others wait.
    public var uploadsMax: Int = 4
    /// How much of the log is kept beyond what is needed (rule 20).
    public var retention = Retention()
    /// How often it is looked at whether something of the log is not needed any more.
    public var floorReviewInterval: Duration = .seconds(1)
    /// The most bytes of entries that are kept beside the log for a store that nobody hosts. *At the
    /// bound* the store is frozen (rule 21).
    public var asideBytesMax: UInt64 = 16 << 20
    /// A store whose replicas did not agree for so many bytes of what concerns it is frozen.
    public var unconfirmedBytesMax: UInt64 = 256 << 20
    /// Where the feed is, as the welcome announces it; a host of `*` is the one connected to.
    public var feed: String
    /// Where nodes reach this sequencer: what others that stand by send them to. Empty where nobody stands by.
    public var address = ""
    /// The most sequencers that stand by which are known. Further ones are not told of.
    public static let standbysMax = 64

    /// Makes the default settings.
    ///
    /// - Parameter feed: Where the feed is, as the welcome announces it.
    public init(feed: String) {
        self.feed = feed
    }

    /// Settings that allow payloads of this size, with the bounds that depend on it raised.
    ///
    /// - Parameter payloadBytesMax: The most bytes of one payload.
    public mutating func allow(payloadBytesMax: UInt32) {
        self.payloadBytesMax = payloadBytesMax
        batchBytesMax = max(batchBytesMax, payloadBytesMax + (1 << 16))
        windowBytes = max(windowBytes, batchBytesMax)
        commitBytesMax = max(commitBytesMax, windowBytes + (1 << 16))
    }

    /// The most that ``sessionsMax`` may be: when all of them leave at once and are forgotten, their
    /// entries fit into one commit, beside what nodes submitted.
    public static let sessionsMost = 10_000

    /// The most that ``visitsMax`` may be: as many as a checkpoint holds.
    public static let visitsMost = VisitQueue.most

    /// What is wrong with the settings, in words; nil when nothing is.
    public var fault: String? {
        if batchBytesMax < payloadBytesMax + 4_096 {
            return "batchBytesMax must exceed payloadBytesMax by 4096 at least"
        }
        if windowBytes < batchBytesMax { return "windowBytes must be at least batchBytesMax" }
        // Else a batch as large as the window would find no room, however often it comes.
        if UInt64(commitBytesMax) < UInt64(windowBytes) + 4_096 {
            return "commitBytesMax must exceed windowBytes by 4096 at least"
        }
        if commitBytesMax > 48 << 20 { return "commitBytesMax must be at most 48 MiB" }
        if sessionsMax > Self.sessionsMost {
            return "sessionsMax must be at most \(Self.sessionsMost)"
        }
        if !(1...Self.visitsMost).contains(visitsMax) {
            return "visitsMax must be 1 to \(Self.visitsMost)"
        }
        if beatInterval <= .zero || silenceMax < beatInterval * 3 {
            return "silenceMax must be at least three times beatInterval, which must be positive"
        }
        if !(1...1_024).contains(readsMax) { return "readsMax must be 1 to 1024" }
        if digestBytesMin < 1 || digestRatioMin < 1 {
            return "digestBytesMin and digestRatioMin must be positive"
        }
        if !(64...(16 << 20)).contains(snapshotPartBytesMax) {
            return "snapshotPartBytesMax must be 64 bytes to 16 MiB"
        }
        if !(1...1_024).contains(uploadsMax) { return "uploadsMax must be 1 to 1024" }
        if floorReviewInterval <= .zero { return "floorReviewInterval must be positive" }
        if slowdownMax < .zero { return "slowdownMax must not be negative" }
        return nil
    }

    /// The largest commit that is published: any that has batches alone.
    var feedFrameBytesMax: Int { Int(max(feedCommitBytesMax, batchBytesMax)) + 1_024 }

    /// What a welcome grants.
    var limits: SessionLimits {
        SessionLimits(
            windowBytes: windowBytes, batchBytesMax: batchBytesMax,
            payloadBytesMax: payloadBytesMax, beatInterval: beatInterval, silenceMax: silenceMax)
    }
}
