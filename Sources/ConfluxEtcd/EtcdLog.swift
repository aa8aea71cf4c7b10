import ConfluxLog
import ConfluxVocabulary

/// The log on etcd, if one machine is not enough. It survives the loss of a minority of etcd's members. Any
/// number of programs may open it; the last one to claim it appends.
///
/// - An append is one transaction, conditional on two keys: `epoch`, which a claim changes, and `end`, which
///   has the last number and the hash of all commits (`ChainHash`). Only that fences.
/// - A lost or inconclusive answer is not an outcome: the identical transaction is sent again, to another
///   member, until its comparisons show the outcome or ``EtcdLogSettings/callMax`` is over.
/// - Only one append is under way at a time, with all commits that wait. etcd does not keep the order of
///   concurrent transactions, so an append that depends on the one before would mostly fail.
/// - Data larger than 1 MiB is first written in parts, which count once a transaction names them.
/// - etcd keeps the history of every key; this log compacts it regularly.
///
/// docs/etcd.md lists the keys. Owned by one thread at a time.
public final class EtcdLog: CopiedLog {
    /// The random identity of this log.
    public let id: LogID
    /// The highest number in the log, as far as this object knows.
    public private(set) var last: SequenceNumber
    /// The lowest number that the log still holds.
    public private(set) var floor: SequenceNumber

    /// What is known after a claim.
    struct Term {
        let claim: EtcdTerm
        /// The last change beside the commits, as far as this object knows.
        var change: EtcdChange
        /// Where the log ends.
        var end: EtcdEnd
        /// The hash of the commit before the floor.
        var beginning: EtcdFloor
        /// The unfinished uploads, by the keys that name them.
        var uploads: [String: EtcdUpload] = [:]
        /// Whether keys were discarded since etcd's history was last compacted, as far as this term knows.
        var hasDiscarded = true
    }

    let settings: EtcdLogSettings
    var term: Term?
    /// nil once closed.
    private var reading: EtcdReading?
    var tracker: EtcdSpace
    private var watch: EtcdWatch?
    var lookPatience: EtcdPatience

    /// How often to retry a claim because another one came first.
    private static let claimsMax = 16

    /// Opens the log below a prefix. If etcd has no key below it, begins a new log.
    ///
    /// - Parameter settings: The log's address, and how to connect.
    /// - Throws: `unreachable`, `denied`, `notALog` if there are other keys, `newerFormat`, `olderFormat`, `damaged`,
    ///   `full`, `failed`, `unknownOutcome`, `invalidSetting`.
    public convenience init(_ settings: EtcdLogSettings) throws(LogError) {
        try self.init(settings, for: .service)
    }

    init(_ settings: EtcdLogSettings, for purpose: EtcdBeginning.Purpose) throws(LogError) {
        try settings.validate()
        let reading: EtcdReading
        do throws(EtcdFailure) {
            reading = try EtcdReading(settings)
        } catch {
            throw LogError(error, "Opening the log at \(settings.address)")
        }
        let beginning = try EtcdBeginning(reading, at: settings.address, for: purpose)
        id = beginning.log
        last = beginning.end.last
        floor = beginning.floor.first
        self.settings = settings
        self.reading = reading
        tracker = EtcdSpace(quotaBytes: settings.quotaBytes)
        lookPatience = EtcdPatience(upTo: settings.answerMax)
    }

    deinit {
        close()
    }

    /// How much of etcd's space is used, by any program. What etcd reports may date from before the last 4 MiB of
    /// appends; what was appended since is added. While it is nearly full, it is at most two seconds old.
    ///
    /// Asking for it may free space: if the file of a member is near the quota and has much free space, the member
    /// is defragmented. The alarm `NOSPACE` is cleared once no file is near the quota.
    public var space: LogSpace {
        if let reading { tracker.review(reading.client) }
        let space = tracker.space
        watch?.isReviewDue = space.room == .nearlyFull
        return space
    }

    /// Begins a term, and removes what the former one left unfinished.
    ///
    /// - Parameter step: By how much the epoch rises, 1 or more.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `unknownOutcome`: an epoch may be used up; claim again. `damaged` if the end of the log is.
    ///   `unreachable`, `denied`, `full`, `failed`, `closed`.
    public func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim {
        let (claim, answer) = try raiseEpoch(by: step, for: nil)
        return try begin(claim, answer)
    }

    /// Begins the term of a claim.
    func begin(_ claim: EtcdTerm, _ answer: EtcdAnswer) throws(LogError) -> LogClaim {
        let reading = try openReading()
        let layout = reading.layout
        guard let endPair = answer.pair(1), let end = EtcdEnd(endPair.value, at: layout.end) else {
            throw .damagedKey(layout.end)
        }
        guard let floorPair = answer.pair(2),
            let beginning = EtcdFloor(floorPair.value, at: layout.floor)
        else { throw .damagedKey(layout.floor) }
        if end.last >= beginning.first {
            guard let found = try reading.commits(endingAt: end.last),
                found.record.hash == end.hash
            else {
                throw .damaged(
                    end.last, end.last,
                    "the last commit, whose bytes are not those that were written")
            }
        }
        term = Term(
            claim: claim, change: EtcdChange(nonce: claim.nonce), end: end, beginning: beginning)
        last = end.last
        floor = beginning.first
        try giveUpUnfinished(answer.pairs.count > 3 ? answer.pairs[3] : [])
        tracker.begin(at: answer.revision)
        return LogClaim(epoch: claim.epoch, last: end.last, lastEpoch: end.epoch)
    }

    /// Claims the log after the newest claim. If there is a candidate, that must be the claim that it knows.
    ///
    /// - Returns: The claim, and what etcd had at that moment: the answer's second to fourth read are `end`,
    ///   `floor` and the unfinished uploads.
    func raiseEpoch(
        by step: UInt64, for candidate: EtcdCandidate?
    ) throws(LogError) -> (EtcdTerm, EtcdAnswer) {
        let reading = try openReading()
        term = nil
        let layout = reading.layout
        let attempt = "Claiming the log"
        let known = try reading.look([.read(.key(layout.epoch))], attempt)
        var former = known.pair(0)
        for _ in 0..<Self.claimsMax {
            guard let value = former?.value, let standing = EtcdTerm(value, at: layout.epoch)
            else { throw .damagedKey(layout.epoch) }
            if let candidate, standing.epoch != candidate.former {
                throw .superseded(candidate.former, by: standing.epoch)
            }
            let claim = EtcdTerm(epoch: standing.epoch.raised(by: step), nonce: .random())
            let change = EtcdChange(nonce: claim.nonce)
            let word = candidate.map {
                ServingWord(epoch: claim.epoch, address: $0.address, renewal: 0, standing: .serving)
            }
            let reads: [EtcdTransaction.Operation] = [
                .read(.key(layout.end)), .read(.key(layout.floor)), .read(.below(layout.uploads)),
            ]
            let answer = try transact(
                EtcdTransaction(
                    comparisons: [.value(layout.epoch, value)],
                    success: [.put(layout.epoch, claim.value(at: layout.epoch))] + reads
                        + [.put(layout.change, change.value(at: layout.change))]
                        + (word.map { [.put(layout.serving, $0.value(at: layout.serving))] } ?? []),
                    failure: [.read(.key(layout.epoch))] + reads), attempt)
            if answer.succeeded { return (claim, answer) }
            former = answer.pair(0)
            // The claim was made already, and its answer was lost.
            if let value = former?.value, EtcdTerm(value, at: layout.epoch) == claim {
                return (claim, answer)
            }
        }
        throw LogError(
            .failed, "Other programs claimed the log each time that this one tried. Try again.")
    }

    /// Adds commits to the end, in one transaction. On return they are on the disks of a majority of etcd's
    /// members.
    ///
    /// - Parameters:
    ///   - commits: The commits to add.
    ///   - last: The number at which the caller expects the log to end.
    ///   - forced: Ignored: an append is always durable.
    /// - Throws: `superseded`, `endDiffers`, `full`, `failed`, `unreachable`, `denied`, `unknownOutcome`,
    ///   `invalidCommit`, `damaged`, `notClaimed`, `closed`.
    public func append(
        _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
    ) throws(LogError) {
        let reading = try openReading()
        guard let term else { throw .notClaimed }
        let newest = try commits.validate(expecting: last)
        let layout = reading.layout
        let attempt = "Appending entries \(last.next) to \(newest.last)"
        guard last == term.end.last, newest.epoch == term.claim.epoch else {
            let answer = try reading.look(
                [.read(.key(layout.epoch)), .read(.key(layout.end))], attempt)
            return try judge(answer, newest, expecting: last)
        }
        let record = EtcdRecord(commits, behind: term.end.hash)
        try writeParts(of: record, commits)
        let end = EtcdEnd(last: record.last, epoch: record.epoch, hash: record.hash)
        let value = record.value
        let answer = try transact(
            EtcdTransaction(
                comparisons: [
                    .value(layout.epoch, term.claim.value(at: layout.epoch)),
                    .value(layout.end, term.end.value(at: layout.end)),
                ],
                success: [
                    .put(layout.record(record.last), value),
                    .put(layout.end, end.value(at: layout.end)),
                ],
                failure: [.read(.key(layout.epoch)), .read(.key(layout.end))]), attempt)
        if !answer.succeeded {
            // If the first attempt succeeded and its answer was lost, the log ends with these commits.
            guard let pair = answer.pair(1), EtcdEnd(pair.value, at: layout.end) == end else {
                return try judge(answer, newest, expecting: last)
            }
        }
        self.last = end.last
        self.term?.end = end
        tracker.wrote(value.count, at: answer.revision, reading.client)
    }

    /// Finds out why nothing was appended, from the values of `epoch` and `end`.
    private func judge(
        _ answer: EtcdAnswer, _ newest: LoggedCommit, expecting last: SequenceNumber
    ) throws(LogError) {
        let reading = try openReading()
        let layout = reading.layout
        guard let pair = answer.pair(0), let standing = EtcdTerm(pair.value, at: layout.epoch)
        else { throw .damagedKey(layout.epoch) }
        guard let pair = answer.pair(1), let end = EtcdEnd(pair.value, at: layout.end) else {
            throw .damagedKey(layout.end)
        }
        let isOurs = term?.claim == standing
        if isOurs {
            self.last = end.last
            term?.end = end
        }
        if end.last == newest.last, try reading.commits(endingAt: end.last)?.commits.last == newest
        {
            return
        }
        guard isOurs, newest.epoch == standing.epoch else {
            throw .superseded(newest.epoch, by: standing.epoch)
        }
        throw .endDiffers(expected: last, found: end.last)
    }

    /// Confirms that there is no newer claim.
    ///
    /// - Throws: `superseded`, `unreachable`, `denied`, `failed`, `damaged`, `notClaimed`, `closed`.
    public func confirm() throws(LogError) {
        let reading = try openReading()
        guard let term else { throw .notClaimed }
        let answer = try reading.look(
            [.read(.key(reading.layout.epoch))], "Confirming the term")
        try requireClaim(term, answer.pair(0))
    }

    /// Reads and verifies commits, from the one that contains a number.
    ///
    /// - Parameters:
    ///   - from: The number to begin with; a number below `floor` means `floor`.
    ///   - limitBytes: The most bytes of all commits together; the first is always returned.
    /// - Returns: The commits; none if the log ends before `from`.
    /// - Throws: `damaged` with the numbers concerned; `unreachable`, `denied`, `failed`, `closed`.
    public func read(
        from: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        try openReading().read(from: from, through: last, limitBytes: limitBytes)
    }

    /// Makes a reader for another thread, with connections of its own.
    ///
    /// - Returns: The reader.
    /// - Throws: `failed`, `closed`.
    public func makeReader() throws(LogError) -> any LogReader {
        _ = try openReading()
        return try EtcdLogReader(settings)
    }

    /// Watches for claims of other programs, on a thread of its own, until the log is closed.
    ///
    /// - Parameter tell: Called on that thread when there may be a newer claim, when connections were lost,
    ///   and when space was short and may be free. ``confirm()`` and ``space`` tell the truth.
    public func watchClaims(_ tell: @escaping @Sendable () -> Void) {
        watch(\.epoch, tell)
    }

    /// Watches a key, instead of the one that was watched before.
    func watch(_ key: KeyPath<EtcdLayout, String>, _ tell: @escaping @Sendable () -> Void) {
        watch?.stop()
        watch = reading.map { EtcdWatch(settings, key: $0.layout[keyPath: key], tell) }
    }

    /// Takes over what a look found, if this object has not claimed the log.
    func adopt(_ last: SequenceNumber, _ floor: SequenceNumber) {
        term = nil
        self.last = last
        self.floor = floor
    }

    /// Ends the connections. Closing again does nothing.
    public func close() {
        watch?.stop()
        watch = nil
        reading = nil
    }

    // MARK: Parts

    func openReading() throws(LogError) -> EtcdReading {
        guard let reading else { throw .closed }
        return reading
    }

    func rise(to beginning: EtcdFloor) {
        floor = beginning.first
        term?.beginning = beginning
    }

    func transact(
        _ transaction: EtcdTransaction, _ attempt: @autoclosure () -> String
    ) throws(LogError) -> EtcdAnswer {
        let client = try openReading().client
        do throws(EtcdFailure) {
            return try client.transact(transaction)
        } catch {
            // If etcd was full of what nobody needs, it has room again.
            guard error.kind == .full, !error.mayHaveHappened, tracker.wasRefused(client) else {
                throw LogError(error, attempt())
            }
        }
        do throws(EtcdFailure) {
            return try client.transact(transaction)
        } catch {
            throw LogError(error, attempt())
        }
    }

    /// Changes the data beside the commits, in one transaction, if no newer claim exists (rule 1) and nothing
    /// was changed since this object last looked. So an earlier attempt can't take effect later.
    ///
    /// - Throws: also `failed`, if an earlier change with an unknown outcome has happened.
    func change(
        _ operations: [EtcdTransaction.Operation], _ attempt: @autoclosure () -> String
    ) throws(LogError) {
        let layout = try openReading().layout
        guard let term else { throw .notClaimed }
        let next = EtcdChange(nonce: .random())
        let key = layout.change
        let answer = try transact(
            EtcdTransaction(
                comparisons: [
                    .value(layout.epoch, term.claim.value(at: layout.epoch)),
                    .value(key, term.change.value(at: key)),
                ], success: operations + [.put(key, next.value(at: key))],
                failure: [.read(.key(layout.epoch)), .read(.key(key))]), attempt())
        if !answer.succeeded {
            try requireClaim(term, answer.pair(0))
            guard let pair = answer.pair(1), let standing = EtcdChange(pair.value, at: key) else {
                throw .damagedKey(key)
            }
            self.term?.change = standing
            guard standing == next else { throw .changedBefore(attempt()) }
        }
        self.term?.change = next
        var byteCount = 0
        for operation in operations {
            switch operation {
            case .put(_, let value): byteCount += value.count
            case .delete: self.term?.hasDiscarded = true
            case .read: break
            }
        }
        tracker.wrote(byteCount, at: answer.revision, try openReading().client)
    }

    private func requireClaim(_ term: Term, _ pair: EtcdPair?) throws(LogError) {
        let key = try openReading().layout.epoch
        guard let pair, let standing = EtcdTerm(pair.value, at: key) else {
            throw .damagedKey(key)
        }
        guard standing == term.claim else {
            throw .superseded(term.claim.epoch, by: standing.epoch)
        }
    }
}

extension LogError {
    fileprivate static func changedBefore(_ attempt: String) -> LogError {
        LogError(
            .failed,
            "\(attempt) changed nothing: a change before it, whose answer was lost, has happened. "
                + "Try again.")
    }
}
