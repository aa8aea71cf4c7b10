import ConfluxVocabulary

/// One life of a store: what the log says of it, and the work under way for it in this term.
///
/// All of this is in one value, so that ending the life ends all of it. A later answer, of the log
/// or of a replica, names its life, and so finds that there is none, or another one.
struct StoreLife: Sendable, Equatable {
    /// What the log says. *Use*: the state of the log has only this part.
    var record: StoreRecord
    /// The work under way.
    var work = StoreWork()

    /// Compares only what the log says.
    static func == (left: Self, right: Self) -> Bool { left.record == right.record }

    /// Whether no entry is admitted for the store. The word that freezes or thaws it may still be
    /// on its way to the log.
    var isFrozenAtAdmission: Bool {
        switch work.word?.kind {
        case .frozen: true
        case .thawed: false
        case .upgraded, .dropped, nil: record.isFrozen
        }
    }

    /// The same, unless that is only because nobody hosts it: whoever opens it thaws it.
    var staysFrozenWhenOpened: Bool { isFrozenAtAdmission && record.freezing?.reason != .abandoned }

    /// Whether its end is on its way to the log. Nothing is admitted after that.
    var isEnding: Bool { work.word?.kind == .dropped }

    /// Whether the snapshot that is migrated is fixed: a newer schema version is on its way to the log, or about to be.
    var isBaseFixed: Bool {
        if case .upgraded? = work.word?.kind { return true }
        return work.rise?.step == .migrating || work.rise?.step == .ready
    }

    /// Whether a host can vote for the store's state: its replica has not stopped, and it can host
    /// the store's schema version.
    private func isVoter(_ incarnation: Incarnation, _ versions: SupportedVersions) -> Bool {
        versions.contains(record.schemaVersion) && work.stops[incarnation] == nil
    }

    /// The hosts that can vote, ascending.
    var voters: [Incarnation] {
        work.hosts.filter { isVoter($0.key, $0.value) }.keys.sorted()
    }

    /// Whether any host can vote.
    var hasVoter: Bool { work.hosts.contains { isVoter($0.key, $0.value) } }

    /// The bytes of the entries since the store's snapshot, if these are its bytes in all. If it is
    /// not known what the snapshot includes, the bytes since the last point.
    func unsavedBytes(of load: UInt64) -> UInt64 {
        let known = if case .initial = record.base { UInt64(0) } else { record.pointLoad }
        return load - min(load, work.point.snapshotLoad ?? known)
    }
}

/// The work under way for one life of a store. Nothing of it outlives the life or the term.
struct StoreWork: Sendable {
    /// The word on the life that is on its way to the log.
    private(set) var word: StoreWord?
    /// The store's way to a newer schema version; nil while nobody prepares one.
    var rise: Rise?
    /// What somebody allowed whoever opens the store next; nil if nobody did.
    var allowance: Allowance?
    /// The last attempt to raise the version, if it failed; nil if none has failed since a node opened the store.
    var riseFailure: RiseFailure?
    /// The live nodes that host the store, by what their hellos and later messages said, and the schema versions as
    /// which they can host it.
    private(set) var hosts: [Incarnation: SupportedVersions] = [:]
    /// The entries before which the replicas of live nodes stopped; for a replica without any state, the number of the
    /// life. A node whose replica stopped while the node opened the store does not host the store.
    private(set) var stops: [Incarnation: SequenceNumber] = [:]
    /// When the store gets its next digest point.
    var point = PointPlan()
    /// What the replicas reported of their states.
    private(set) var votes = Votes()
    /// The snapshot that is being uploaded, or waits for its turn.
    private(set) var upload: SnapshotUpload?
    /// The part of a snapshot that the log is saving. *Invariant*: there is one at a time, so every
    /// answer belongs to this one. If there is no upload, the part belongs to an upload that was
    /// given up.
    private(set) var save: Save?
    /// Why the last attempt to take a snapshot failed; nil if none was made since the last snapshot.
    private(set) var snapshotFailure: String?
    /// The points at which attempts have failed since the last snapshot, up to two.
    private var failedPoints: Set<SequenceNumber> = []
    /// When the last attempt to keep the store's entries aside failed; nil if it did not.
    private(set) var asideFailedAt: Duration?
    /// What that failure was.
    private(set) var asideFailure: String?
    /// The entries that can't be read because a snapshot may be missing; nil if none is missing. No
    /// replica begins with the store until there is a snapshot after which the log has every entry.
    private(set) var missing: SequencerMachine.KnownDamage?

    /// A rise that failed.
    struct RiseFailure: Sendable {
        let reason: String
        /// What the openers that waited for it were told, unless they could host the present version. They are told again
        /// if they repeat the request, since the answer may have been lost.
        let answer: String
        let openers: Openers
        /// Whether entries waited for its nodes. Then it is not tried before its time, whoever opens the store. Otherwise
        /// it is also tried when a node opens the store.
        let heldEntries: Bool
        /// When it is tried again by itself; nil if it is not.
        let retryAt: Duration?
    }

    /// A rise that somebody asked for, and that waits for a newer program.
    struct Allowance: Sendable {
        /// The version that it is for; 0 for any.
        let version: UInt32
        let wish: UpgradeWish
        /// When it is void, unless it is asked for again.
        let until: Duration
    }

    /// Who asks for a rise at present, and what they allow; nil if nobody does.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - version: The version that would be raised to.
    /// - Returns: What is asked for that version.
    func wish(at now: Duration, for version: UInt32) -> UpgradeWish? {
        allowance.flatMap {
            $0.until > now && ($0.version == 0 || $0.version == version) ? $0.wish : nil
        }
    }

    /// A part of a snapshot that the log is saving.
    struct Save: Sendable {
        let isConfirmed: Bool
        /// The bytes of the entries that concerned the store up to the snapshot.
        let load: UInt64
    }

    /// Whether a digest point may be admitted now. It waits for the votes for the last point. It
    /// also waits while the log saves a part of an upload that was given up, since that part may
    /// complete the snapshot.
    var isPointReady: Bool { point.isDue && !votes.isOpen && (save == nil || upload != nil) }

    // MARK: A snapshot that may be missing

    mutating func holdOff(_ missing: SequencerMachine.KnownDamage?) { self.missing = missing }

    mutating func endAwaiting() { missing?.isAwaited = false }

    // MARK: Words

    mutating func begin(_ word: StoreWord) {
        precondition(self.word == nil, "a life has one word at a time")
        self.word = word
    }

    mutating func endWord() -> StoreWord? {
        return exchange(&word, with: nil)
    }

    mutating func wait(_ opener: Opener) { word?.wait(opener) }

    mutating func wait(_ asker: Asker, of sharer: Sharer) { word?.wait(asker, of: sharer) }

    mutating func wait(_ askers: Askers) { word?.wait(askers) }

    // MARK: Hosts

    mutating func host(_ incarnation: Incarnation, as versions: SupportedVersions) {
        hosts[incarnation] = versions
        stops[incarnation] = nil
    }

    /// A node no longer hosts the store, so nobody waits for its vote.
    mutating func endHosting(by incarnation: Incarnation) {
        hosts[incarnation] = nil
        votes.pass(over: incarnation)
    }

    /// A node no longer waits for the store.
    mutating func remove(openersOf incarnation: Incarnation) {
        word?.remove(openersOf: incarnation)
        rise?.openers.remove(incarnation)
    }

    /// Nobody waits for the vote of a node that may not come back.
    mutating func passOver(_ incarnation: Incarnation) { votes.pass(over: incarnation) }

    /// A replica stops, or continues.
    mutating func stop(_ incarnation: Incarnation, at sequence: SequenceNumber?) {
        stops[incarnation] = sequence
        if sequence != nil { votes.pass(over: incarnation) }
    }

    // MARK: Votes

    mutating func begin(_ round: Votes.Round) { votes.begin(round) }

    mutating func add(_ vote: Vote, of incarnation: Incarnation) -> Bool {
        hosts[incarnation] != nil && votes.add(vote, of: incarnation)
    }

    mutating func decide(since life: SequenceNumber) -> Votes.Verdict? {
        votes.decide(since: life)
    }

    mutating func converge() -> Bool { votes.converge() }

    mutating func locate(_ path: String) { votes.locate(path) }

    /// Forgets all votes for the store, and what followed from them: none of it counts any more.
    mutating func forgetVotes() {
        votes = Votes()
    }

    // MARK: Snapshots

    /// No snapshot can be taken at present, for this reason.
    ///
    /// - Parameters:
    ///   - reason: The reason.
    ///   - point: The digest point.
    mutating func failSnapshot(_ reason: String, at point: SequenceNumber) {
        snapshotFailure = reason
        if failedPoints.count < 2 { failedPoints.insert(point) }
    }

    /// Whether the attempts at two points have failed. One of them may have failed because a node just left.
    var hasFailedTwice: Bool { failedPoints.count == 2 }

    /// A snapshot is saved, for which this was the load.
    mutating func tookSnapshot(load: UInt64) {
        point.take(load: load)
        snapshotFailure = nil
        failedPoints = []
    }

    mutating func begin(_ upload: SnapshotUpload) { self.upload = upload }

    /// Gives the upload up. If the part that the log is saving completes the snapshot, that still
    /// counts.
    mutating func giveUpUpload() { upload = nil }

    mutating func ask(until deadline: Duration) { upload?.ask(until: deadline) }

    /// Goes on with the upload's next source. Without one, gives the upload up.
    mutating func passOverSource() {
        if upload?.passOverSource() == false { upload = nil }
    }

    mutating func take(_ chunk: SnapshotChunk, partBytesMax: Int) -> SnapshotUpload.Taken? {
        guard let taken = upload?.take(chunk, partBytesMax: partBytesMax) else { return nil }
        if case .part = taken, let upload {
            save = Save(isConfirmed: upload.isConfirmed, load: upload.load)
        }
        return taken
    }

    /// The log has finished saving the part.
    ///
    /// - Returns: What was being saved; nil if nothing was.
    mutating func endSave() -> Save? {
        return exchange(&save, with: nil)
    }

    // MARK: What is kept aside

    mutating func failAside(_ failure: String, at time: Duration) {
        asideFailedAt = time
        asideFailure = failure
    }

    mutating func keptAside() {
        asideFailedAt = nil
        asideFailure = nil
    }
}
