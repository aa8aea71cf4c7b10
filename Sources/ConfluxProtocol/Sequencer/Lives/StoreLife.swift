import ConfluxVocabulary

/// One life of a store: what the log says of it, and what is under way for it in this tenure.
///
/// All of it is in this value, so that what ends the life ends all of it. An answer that comes later, of
/// the log or of a replica, names the life that it is about, and finds none or another one.
struct StoreLife: Sendable, Equatable {
    /// What the log says. *Use*: the only part that a fold has.
    var record: StoreRecord
    /// What is under way.
    var work = StoreWork()

    /// Equal in what the log says.
    static func == (left: Self, right: Self) -> Bool { left.record == right.record }

    /// Whether no entry is admitted for it: the word may still be on its way to the log.
    var isFrozenAtAdmission: Bool {
        switch work.word?.kind {
        case .frozen: true
        case .thawed: false
        case .upgraded, .dropped, nil: record.isFrozen
        }
    }

    /// Whether its end is on its way to the log: nothing is admitted behind that.
    var isEnding: Bool { work.word?.kind == .dropped }

    /// Whether a newer schema version is on its way to the log.
    var isUpgrading: Bool {
        if case .upgraded? = work.word?.kind { true } else { false }
    }

    /// Whether a host can say what the store's state is: it continues, and has the store's own version.
    func isVoter(_ host: StoreHost) -> Bool {
        host.schemaVersion == record.schemaVersion && host.stoppedAt == nil
    }

    /// The hosts that can say what the store's state is, ascending.
    var voters: [Incarnation] {
        work.hosts.filter { isVoter($0.value) }.keys.sorted()
    }

    /// Whether there is such a host.
    var hasVoter: Bool { work.hosts.values.contains { isVoter($0) } }
}

/// A replica of a store, in a live node.
struct StoreHost: Sendable, Equatable {
    var schemaVersion: UInt32
    /// The entry that it did not apply, if it goes no further.
    var stoppedAt: SequenceNumber?
}

/// What is under way for one life of a store: nothing of it outlives the life, or the tenure.
struct StoreWork: Sendable {
    /// The entry about the life itself that is on its way to the log.
    private(set) var word: StoreWord?
    /// The replicas in live nodes, as their hellos and what followed said.
    private(set) var hosts: [Incarnation: StoreHost] = [:]
    /// When it is digested next.
    var point = PointPlan()
    /// What its replicas said of their states.
    private(set) var votes = Votes()
    /// The snapshot that is on its way from a replica to the log.
    private(set) var upload: SnapshotUpload?
    /// The part of a snapshot that the log is saving. *Invariant*: one at a time, so that an answer is
    /// that of this one; of an upload that was given up where there is none.
    private(set) var save: Save?
    /// Its entries could not be kept aside; when it is tried again.
    private(set) var asideRetryAt: Duration?
    /// What can't be read since a snapshot may be missing. Nobody begins with it until there is a snapshot
    /// behind which the log has everything.
    private(set) var missing: SequencerMachine.KnownDamage?

    /// A part of a snapshot on its way to the log's disk.
    struct Save: Sendable {
        let isConfirmed: Bool
        /// What concerned the store up to the snapshot, in bytes.
        let load: UInt64
    }

    /// Whether a digest point may be admitted now. It waits for the votes for the last one, and for what
    /// the log saves of an upload that was given up: that may be whole with it.
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
        defer { word = nil }
        return word
    }

    mutating func wait(_ opener: Opener) { word?.wait(opener) }

    mutating func wait(_ asker: Asker) { word?.wait(asker) }

    // MARK: Hosts

    mutating func host(_ incarnation: Incarnation, schemaVersion: UInt32) {
        hosts[incarnation] = StoreHost(schemaVersion: schemaVersion)
    }

    /// A node hosts it no longer: nobody waits for its vote.
    mutating func endHosting(by incarnation: Incarnation) {
        hosts[incarnation] = nil
        votes.pass(over: incarnation)
    }

    /// A node wants it no longer.
    mutating func remove(openersOf incarnation: Incarnation) {
        word?.remove(openersOf: incarnation)
    }

    /// A replica goes no further, or continues.
    mutating func stop(_ incarnation: Incarnation, at sequence: SequenceNumber?) {
        hosts[incarnation]?.stoppedAt = sequence
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

    /// Nothing that was said of its state counts any more, nor what was wanted by that.
    mutating func forgetVotes() {
        votes = Votes()
    }

    // MARK: Snapshots

    mutating func begin(_ upload: SnapshotUpload) { self.upload = upload }

    /// Gives the upload up. What the log saves of it just now may be whole with that, and counts then.
    mutating func giveUpUpload() { upload = nil }

    mutating func ask(until deadline: Duration) { upload?.ask(until: deadline) }

    mutating func passOverSource() { upload?.passOverSource() }

    mutating func take(_ chunk: SnapshotChunk) -> SnapshotUpload.Taken? {
        guard let taken = upload?.take(chunk) else { return nil }
        if case .part = taken, let upload {
            save = Save(isConfirmed: upload.isConfirmed, load: upload.load)
        }
        return taken
    }

    /// The log has answered for the part that it saved.
    ///
    /// - Returns: What was saved; nil if nothing was.
    mutating func endSave() -> Save? {
        defer { save = nil }
        return save
    }

    // MARK: What is kept aside

    mutating func retryAside(at time: Duration) { asideRetryAt = time }
}
