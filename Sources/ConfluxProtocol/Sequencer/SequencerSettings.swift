import ConfluxVocabulary

/// Every bound of the sequencer, as one value. ``fault`` checks it.
public struct SequencerSettings: Sendable, Hashable {
    /// The most bytes of one payload. Default: 1 MiB.
    public var payloadBytesMax: UInt32 = 1 << 20
    /// The most bytes of one batch. A batch holds at least one payload of the largest size.
    public var batchBytesMax: UInt32 = (1 << 20) + (1 << 16)
    /// The most bytes that one node may have without an outcome (rule 27). Further batches are
    /// discarded.
    public var windowBytes: UInt32 = 4 << 20
    /// The most bytes that gather for one append. Further batches are discarded with `expected`.
    public var commitBytesMax: UInt32 = 32 << 20
    /// The next commit begins where a batch would make the present one larger than this. So each
    /// message of the feed is at most this long, unless one batch is longer. A larger first state
    /// of a store is announced by a beat, and fetched. What waits for a subscriber that does not
    /// read is bounded in bytes by this and by the number of messages in its queue. Default:
    /// 256 KiB, which is more than gathers while many small actions arrive.
    public var feedCommitBytesMax: UInt32 = 256 << 10
    /// The most outcomes kept for a node that never acknowledges them.
    public var unsettledOutcomesMax: Int = 1 << 16
    /// The most bytes of the first state that an opener sends.
    public var initialStateBytesMax: UInt32 = 16 << 20
    /// The most bytes of commits in one answer to a fetch. An answer has at least one commit, even
    /// if that is larger. The bound is small, so that other messages and the node's other work wait
    /// only briefly.
    public var fetchBytesMax: UInt32 = 256 << 10
    /// The most fetches and loads that are read for at once. Others wait, and the connections take
    /// turns. One thread reads. If it read ahead, the answers would queue in front of receipts at
    /// the socket.
    public var readsMax: Int = 1
    /// The most sessions remembered, at most ``sessionsMost``. For a new session, the one that left
    /// first is forgotten.
    public var sessionsMax: Int = 10_000
    /// The most sessions remembered for one key, unless its rights set another number. For a new
    /// session, the key's own session that left first is forgotten.
    public var sessionsPerKeyMax: Int = 1_000
    /// The most connections of observers, which the keys share.
    public var observersMax: Int = 1_000
    /// The most stores, which the keys that create them share.
    public var storesMax: Int = 20_000
    /// The most bytes of first states held in memory, for all stores together, which the keys share. A checkpoint
    /// has them, too, so while one is made they are held twice.
    public var initialStatesBytesMax: Int = 256 << 20
    /// The most state names known, whether hosted or seen in the log, which the keys share.
    public var statesMax: Int = 4_096
    /// The most questions open at once, which the keys share.
    public var questionsMax: Int = 4_096
    /// The most barriers open at once, for all nodes, which the keys share. A further barrier fails, and
    /// the node may ask again.
    public var barriersMax: Int = 4_096
    /// The longest time that a question waits for its answers.
    public var questionPatienceMax: Duration = .seconds(60)
    /// A replica lags if it is this many entries behind the log (rule 28).
    public var lagEntriesMax: UInt64 = 1_000_000
    /// The longest time for which a lagging replica slows admission. After that it counts as stuck,
    /// and slows nothing until it has caught up.
    public var slowdownMax: Duration = .seconds(5)
    /// The most bytes of batches admitted in one ``beatInterval`` while a majority of the live
    /// replicas lags. At least one batch is admitted. Further batches are discarded with
    /// `expected`.
    public var slowBytesPerBeat: UInt32 = 256 << 10
    /// The longest time between two messages of the feed (rule 6).
    public var beatInterval: Duration = .milliseconds(100)
    /// A node that has been silent for this long has left.
    public var silenceMax: Duration = .seconds(10)
    /// How long an action waits for a lock on its store, and its node's later actions with it, before it is rejected.
    public var lockPatience: Duration = .seconds(10)
    /// For this long after a term has begun, hellos and messages for sessions that are gone do
    /// not count as useless: nodes still speak to the term before, and all of them say hello
    /// (rule 45).
    public var wasteGrace: Duration = .seconds(10)
    /// A session is forgotten when its node has been away for this long (rule 10).
    public var forgetAfter: Duration = .seconds(86_400)
    /// The same for a keyed session, which a later run is expected to resume (rule 11).
    public var keyedSessionsKeptFor: Duration = .seconds(7 * 86_400)
    /// How long the holder of a name or of a key has to answer when another process wants it (rules
    /// 10 and 11).
    public var nameInquiryMax: Duration = .seconds(1)
    /// The minimum bytes of entries for a store between two of its digest points (rule 18).
    public var digestBytesMin: UInt64 = 256 << 10
    /// The same, as a multiple of the size of the store's state.
    public var digestRatioMin: UInt64 = 16
    /// How long replicas have to vote at a digest point. After that, the votes that have arrived
    /// decide.
    public var votePatience: Duration = .seconds(10)
    /// How long a node may take to migrate a snapshot before a store's schema version does not rise, and how long
    /// entries for the store may wait until it has risen (rule 17). Large states get a second more for each 16 MiB. It
    /// is less than nodes wait for a store.
    public var migrationPatience: Duration = .seconds(5)
    /// How long a rise that failed while entries waited for it is not tried again, unless somebody asks for it. So a
    /// host that fails again and again holds up a store for a twelfth of the time at most.
    public var riseRetryInterval: Duration = .seconds(60)
    /// The minimum bytes of entries for a store between two of its snapshots (rule 19).
    public var snapshotBytesMin: UInt64 = 4 << 20
    /// The largest state of which a snapshot is taken. *At the bound* the log keeps the store's
    /// entries.
    public var snapshotBytesMax: UInt64 = 1 << 30
    /// The most bytes of one part of a snapshot, in either direction.
    public var snapshotPartBytesMax: UInt32 = 256 << 10
    /// How long a replica has to answer with a part, before another replica is asked. Together with
    /// ``snapshotPartBytesMax`` it is the lowest rate at which a replica may send: 128 KiB a second by default.
    public var snapshotPatience: Duration = .seconds(2)
    /// The most snapshots uploaded to the log at once, which the keys of the replicas share. Others wait.
    public var uploadsMax: Int = 8
    /// How much of the log is kept beyond what somebody may need (rule 20).
    public var retention = Retention()
    /// How often the sequencer checks which entries of the log are no longer needed.
    public var floorReviewInterval: Duration = .seconds(1)
    /// The most bytes of entries kept beside the log for a store that nobody hosts. *At the bound*
    /// the store is frozen (rule 21).
    public var asideBytesMax: UInt64 = 16 << 20
    /// A store is frozen when it has received this many bytes of entries while its replicas did not
    /// agree.
    public var unconfirmedBytesMax: UInt64 = 256 << 20
    /// The address of the feed, as the welcome announces it. A host of `*` stands for the host that
    /// the node connected to.
    public var feed: String
    /// The address at which nodes reach this sequencer, to which standbys redirect them. Empty if
    /// there is no standby.
    public var address = ""
    /// How many actions a second each key may dispatch that has a limit. *Use*: for timers, which fire whoever is there.
    package var rates: [Name: UInt32] = [:]

    /// Makes the default settings.
    ///
    /// - Parameter feed: Where the feed is, as the welcome announces it.
    public init(feed: String) {
        self.feed = feed
    }

    /// Allows payloads of this size, and raises the bounds that depend on it.
    ///
    /// - Parameter payloadBytesMax: The most bytes of one payload.
    public mutating func allow(payloadBytesMax: UInt32) {
        self.payloadBytesMax = payloadBytesMax
        batchBytesMax = max(batchBytesMax, payloadBytesMax + (1 << 16))
        windowBytes = max(windowBytes, batchBytesMax)
        commitBytesMax = max(commitBytesMax, windowBytes + (1 << 16))
    }

    /// The highest value of ``sessionsMax``. If this many sessions leave at once and are forgotten,
    /// their entries fit into one commit, together with what nodes submitted.
    public static let sessionsMost = 10_000

    /// What is wrong with the settings, in words; nil if nothing is.
    public var fault: String? {
        if batchBytesMax < payloadBytesMax + 4_096 {
            return "batchBytesMax must exceed payloadBytesMax by 4096 at least"
        }
        if windowBytes < batchBytesMax { return "windowBytes must be at least batchBytesMax" }
        // Otherwise a batch as large as the window would never fit, however often it is submitted.
        if UInt64(commitBytesMax) < UInt64(windowBytes) + 4_096 {
            return "commitBytesMax must exceed windowBytes by 4096 at least"
        }
        if commitBytesMax > 48 << 20 { return "commitBytesMax must be at most 48 MiB" }
        if sessionsMax > Self.sessionsMost {
            return "sessionsMax must be at most \(Self.sessionsMost)"
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

    /// The largest frame that is published. A commit that consists of batches always fits.
    var feedFrameBytesMax: Int { Int(max(feedCommitBytesMax, batchBytesMax)) + 1_024 }

    /// The limits that a welcome grants.
    var limits: SessionLimits {
        SessionLimits(
            windowBytes: windowBytes, batchBytesMax: batchBytesMax,
            payloadBytesMax: payloadBytesMax, beatInterval: beatInterval, silenceMax: silenceMax)
    }
}
