import ConfluxVocabulary

/// Joins batches and events into a commit: one buffer that is the feed's frame, whose body the log
/// stores.
///
/// A batch is copied unchanged, in one run, whatever is in it. After `finish` the builder is ready
/// for the next commit: that commit begins with the next number, and its predecessor is this
/// term. The finished buffer is handed out without a copy. So the next commit has a buffer of its
/// own, with room for about as much as the last ones needed.
///
/// A builder is a value without a lock: one thread uses it at a time.
package struct CommitBuilder: Sendable {
    /// The log that the commits belong to.
    package let log: LogID
    /// The term that commits. It is also the sender's, in the header.
    package let epoch: Epoch
    /// The epoch of the commit before the one that is being built.
    package private(set) var predecessor: Epoch
    /// The first number of the commit that is being built.
    package private(set) var first: SequenceNumber
    /// How many entries were appended to it.
    package private(set) var count: UInt32 = 0
    /// The limits on a commit.
    package let limits: WireLimits

    /// *Use:* the frame so far. *Invariant:* empty, or begun by `begin`.
    private var writer = FrameWriter()
    private var blocks = 0
    /// *Use:* how much room the next frame gets. It follows growth at once, and shrinks by at most
    /// a quarter with each commit, so that one large commit does not make all later ones large.
    private var roomBytes = 4_096

    /// Makes a builder for the commits of one term.
    ///
    /// - Parameters:
    ///   - log: The log's id.
    ///   - epoch: The term.
    ///   - predecessor: The epoch of the last commit in the log; ``Epoch/none`` in an empty log.
    ///   - first: The number of the first entry that will be appended.
    ///   - limits: The limits on a commit.
    package init(
        log: LogID, epoch: Epoch, predecessor: Epoch, first: SequenceNumber,
        limits: WireLimits = .standard
    ) {
        self.log = log
        self.epoch = epoch
        self.predecessor = predecessor
        self.first = first
        self.limits = limits
    }

    /// Whether nothing was appended since the last `finish`.
    package var isEmpty: Bool { count == 0 }

    /// How many bytes the frame has so far.
    package var byteCount: Int { max(writer.bytes.count, CommitLayout.blocksOffset) }

    /// The number that the next entry appended will have.
    package var next: SequenceNumber { first.advanced(by: UInt64(count)) }

    /// Whether a batch fits. A batch within its own limit always fits into an empty commit.
    package func canAppend(_ batch: Batch) -> Bool {
        hasRoom(CommitLayout.batchPrefixBytes + batch.encoded.count)
    }

    /// Whether an event fits.
    package func canAppend(_ event: LogEvent) -> Bool {
        hasRoom(CommitLayout.blockPrefixBytes + event.byteCountMax)
    }

    /// Appends a batch, which must fit: see `canAppend`.
    ///
    /// - Parameters:
    ///   - batch: The batch, which is copied as it is encoded.
    ///   - incarnation: The incarnation that it comes from.
    package mutating func append(_ batch: Batch, from incarnation: Incarnation) {
        precondition(
            canAppend(batch), "a commit of \(byteCount) bytes and \(blocks) blocks is full")
        begin()
        writer.together { fields in
            fields.fixed(CommitLayout.batchBlock)
            fields.fixed(UInt32(8 + batch.encoded.count))
            fields.number(incarnation)
        }
        writer.raw(batch.encoded)
        blocks += 1
        count += batch.count
    }

    /// Appends an event, which must fit: see `canAppend`.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - owner: The name of the key that caused it, if a key did.
    package mutating func append(_ event: LogEvent, by owner: Name? = nil) {
        precondition(
            canAppend(event), "a commit of \(byteCount) bytes and \(blocks) blocks is full")
        begin()
        writer.fixed(CommitLayout.eventBlock)
        writer.measured { writer in
            event.write(to: &writer)
            writer.extension(LogEvent.ownerTag, owner, "a key's name")
            writer.extension(LogEvent.migratedTag, event.migrated, "a digest")
        }
        blocks += 1
        count += 1
    }

    /// Ends the commit, which must have an entry.
    ///
    /// - Parameter timestamp: When the sequencer ordered it.
    /// - Returns: The feed's frame. The log stores it without its first ``Frame/size`` bytes.
    package mutating func finish(timestamp: Timestamp) -> Bytes {
        precondition(count > 0, "a commit has at least one entry")
        writer.patch(timestamp.rawValue, at: CommitLayout.timestampOffset)
        writer.patch(count, at: CommitLayout.countOffset)
        writer.patch(UInt32(blocks), at: CommitLayout.blockCountOffset)
        first = next
        predecessor = epoch
        count = 0
        blocks = 0
        let frame = writer.take()[...]
        roomBytes = max(frame.count, roomBytes - roomBytes / 4)
        return frame
    }

    /// A builder for the commit that follows this one.
    package var following: CommitBuilder {
        CommitBuilder(log: log, epoch: epoch, predecessor: epoch, first: next, limits: limits)
    }

    private func hasRoom(_ bytes: Int) -> Bool {
        blocks < limits.blocksPerCommitMax && byteCount + bytes <= limits.frameBytesMax
    }

    /// Writes what comes before the first block. The timestamp and the counts are filled in at the
    /// end.
    private mutating func begin() {
        guard writer.bytes.isEmpty else { return }
        writer = FrameWriter(kind: .commit, speaker: Speaker(epoch: epoch), bodyBytes: roomBytes)
        writer.together { fields in
            fields.identifier(log)
            fields.number(epoch)
            fields.number(predecessor)
            fields.number(first)
            fields.fixed(Int64(0))
            fields.fixed(UInt32(0))
            fields.fixed(UInt32(0))
        }
    }
}
