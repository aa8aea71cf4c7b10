import ConfluxLog
import ConfluxVocabulary

/// Several sequencers that share one log (rule 47).
extension EtcdLog: SharedActionLog {
    /// Looks at the log, with one read.
    ///
    /// - Returns: What it found.
    /// - Throws: `damaged`, `unreachable`, `denied`, `failed`, `closed`.
    public func look() throws(LogError) -> SharedLogView {
        let reading = try openReading()
        let layout = reading.layout
        // If a member is lost together with the serving sequencer's machine, that must not delay a takeover.
        let answer = try lookPatience.ask(reading.client, within: settings) {
            () throws(LogError) in
            try reading.look(
                [
                    .read(.key(layout.epoch)), .read(.key(layout.end)), .read(.key(layout.floor)),
                    .read(.key(layout.serving)),
                ], "Reading the log's state")
        }
        guard let pair = answer.pair(0), let standing = EtcdTerm(pair.value, at: layout.epoch)
        else { throw .damagedKey(layout.epoch) }
        guard let pair = answer.pair(1), let end = EtcdEnd(pair.value, at: layout.end) else {
            throw .damagedKey(layout.end)
        }
        guard let pair = answer.pair(2), let first = EtcdFloor(pair.value, at: layout.floor) else {
            throw .damagedKey(layout.floor)
        }
        adopt(end.last, first.first)
        return SharedLogView(
            epoch: standing.epoch, last: end.last, floor: first.first,
            serving: answer.pair(3).flatMap { ServingWord($0.value, at: layout.serving) })
    }

    /// Begins a term, unless another claim was made since that epoch. The same transaction says who serves.
    ///
    /// - Parameters:
    ///   - step: By how much the epoch rises, 1 or more.
    ///   - epoch: The epoch of the newest claim that was found.
    ///   - address: Where nodes reach the claiming sequencer.
    ///   - won: Gets the term's heartbeat, before the end of the log is verified.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `superseded` if there was another claim; otherwise like ``claim(raisingEpochBy:)``.
    public func claim(
        raisingEpochBy step: UInt64, after epoch: Epoch, as address: String,
        _ won: (any TermHeartbeat, Epoch) -> Void
    ) throws(LogError) -> LogClaim {
        let candidate = EtcdCandidate(former: epoch, address: address)
        let (claim, answer) = try raiseEpoch(by: step, for: candidate)
        won(try EtcdHeartbeat(settings, claim), claim.epoch)
        return try begin(claim, answer)
    }

    /// Says that a sequencer stands by.
    ///
    /// - Parameter standby: The standby, and how far it has followed the log.
    /// - Throws: `unreachable`, `denied`, `full`, `failed`, `closed`.
    public func standBy(_ standby: StandbyWord) throws(LogError) {
        let key = try openReading().layout.standby(standby.address)
        _ = try transact(
            EtcdTransaction(success: [.put(key, standby.value(at: key))]), "Standing by")
    }

    /// Watches the words of the serving sequencer.
    ///
    /// - Parameter tell: Called on one of the log's own threads when they may have changed.
    public func watchServing(_ tell: @escaping @Sendable () -> Void) {
        watch(\.serving, tell)
    }

    /// Says that a sequencer no longer stands by.
    ///
    /// - Parameter address: The address at which nodes reached it.
    /// - Throws: `unreachable`, `denied`, `failed`, `closed`.
    public func standDown(_ address: String) throws(LogError) {
        let key = try openReading().layout.standby(address)
        _ = try transact(EtcdTransaction(success: [.delete(.key(key))]), "Ending the standby")
    }
}

/// A sequencer that claims a shared log.
struct EtcdCandidate {
    /// The epoch of the newest claim that it found.
    let former: Epoch
    /// Where nodes reach this sequencer.
    let address: String
}

/// Says that a term serves, and reads who stands by, in one transaction that compares the claim.
final class EtcdHeartbeat: TermHeartbeat {
    private static let answerMax = Duration.seconds(1)
    private static let callMax = Duration.seconds(1)
    /// How long a silent standby still counts as one, and below, after how long it is forgotten.
    private static let silenceMax = Duration.seconds(3)
    private static let memoryMax = Duration.seconds(10)
    private static let standbysMax = 64
    /// After how many words to compact etcd's history of them. Appends to the log compact it as well.
    private static let compactCount = 2_000

    private let reading: EtcdReading
    private let claim: EtcdTerm
    /// The last word of each standby, by its address.
    private var heard: [String: Heard] = [:]
    private var count = 0
    private var patience = EtcdPatience(upTo: answerMax)

    private struct Heard {
        /// The last word, and since when it has not changed.
        var word: StandbyWord
        var since: Duration
        /// Whether the word has changed since this term first read it. Before that, the standby may be long
        /// gone.
        var isThere = false
    }

    init(_ settings: EtcdLogSettings, _ claim: EtcdTerm) throws(LogError) {
        do throws(EtcdFailure) {
            reading = try EtcdReading(settings)
        } catch {
            throw LogError(error, "Opening the log")
        }
        self.claim = claim
    }

    func say(_ word: ServingWord) throws(LogError) -> [StandbyWord] {
        let layout = reading.layout
        let now = reading.client.now
        let answerMax = patience.answerMax
        reading.client.limit(answer: answerMax, call: max(Self.callMax, answerMax * 2))
        let silent = heard.filter { now - $0.value.since > Self.memoryMax }.keys.sorted()
        // A serving sequencer does not stand by.
        let gone = silent + (silent.contains(word.address) ? [] : [word.address])
        let answer: EtcdAnswer
        do throws(EtcdFailure) {
            answer = try reading.client.transact(
                EtcdTransaction(
                    comparisons: [.value(layout.epoch, claim.value(at: layout.epoch))],
                    success: [
                        .put(layout.serving, word.value(at: layout.serving)),
                        .read(layout.standbys, limit: Self.standbysMax),
                    ] + gone.map { .delete(.key(layout.standby($0))) },
                    failure: [.read(.key(layout.epoch))]))
        } catch {
            patience.failed()
            throw LogError(error, "Announcing who serves")
        }
        patience.took(reading.client.now - now)
        guard answer.succeeded else {
            guard let pair = answer.pair(0), let standing = EtcdTerm(pair.value, at: pair.key)
            else { throw .damagedKey(layout.epoch) }
            throw .superseded(claim.epoch, by: standing.epoch)
        }
        for address in gone { heard[address] = nil }
        compact(to: answer.revision)
        return note(answer.pairs[1], except: Set(gone), at: now)
    }

    private func note(
        _ pairs: [EtcdPair], except gone: Set<String>, at now: Duration
    ) -> [StandbyWord] {
        var words: [StandbyWord] = []
        for pair in pairs {
            let address = reading.layout.standbyAddress(at: pair.key)
            guard !gone.contains(address),
                let word = StandbyWord(pair.value, at: pair.key, of: address)
            else { continue }
            let former = heard[address]
            if former?.word != word {
                heard[address] = Heard(word: word, since: now, isThere: former != nil)
            }
            guard let known = heard[address], known.isThere, now - known.since <= Self.silenceMax
            else { continue }
            words.append(word)
        }
        return words
    }

    /// Compacts etcd's history of the words. Without appends, nothing else does.
    private func compact(to revision: UInt64) {
        count += 1
        guard count >= Self.compactCount else { return }
        count = 0
        // If it fails, it is tried again later.
        try? reading.client.compact(to: revision, isAwaited: false)
    }
}
