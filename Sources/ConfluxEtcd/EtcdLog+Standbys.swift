import ConfluxLog
import ConfluxVocabulary

/// Several sequencers on one log: rule 47.
extension EtcdLog: SharedActionLog {
    /// Looks how the log is, by one read.
    ///
    /// - Returns: What was found.
    /// - Throws: `damaged`, `unreachable`, `denied`, `failed`, `closed`.
    public func look() throws(LogError) -> SharedLogView {
        let reading = try openReading()
        let layout = reading.layout
        // A member that is lost with the sequencer's machine must not make a takeover late.
        let answer = try lookPatience.ask(reading.client, within: settings) {
            () throws(LogError) in
            try reading.look(
                [
                    .read(.key(layout.epoch)), .read(.key(layout.end)), .read(.key(layout.floor)),
                    .read(.key(layout.serving)),
                ], "Looking how the log is")
        }
        guard let pair = answer.pair(0), let standing = EtcdTenure(pair.value, at: layout.epoch)
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

    /// Begins a tenure, if nobody has since that epoch, and says in the same transaction who serves.
    ///
    /// - Parameters:
    ///   - step: By how much the epoch rises, 1 or more.
    ///   - epoch: The newest claim's epoch, as it was found.
    ///   - address: Where nodes reach the one that claims it.
    ///   - won: Given what says that the tenure serves, before the end of the log is verified.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `superseded` where there was another claim; else as ``claim(raisingEpochBy:)``.
    public func claim(
        raisingEpochBy step: UInt64, after epoch: Epoch, as address: String,
        _ won: (any TenureHerald, Epoch) -> Void
    ) throws(LogError) -> LogClaim {
        let candidate = EtcdCandidate(former: epoch, address: address)
        let (claim, answer) = try raiseEpoch(by: step, for: candidate)
        won(try EtcdHerald(settings, claim), claim.epoch)
        return try begin(claim, answer)
    }

    /// Says that a sequencer stands by.
    ///
    /// - Parameter standby: Which one, and how far it is.
    /// - Throws: `unreachable`, `denied`, `full`, `failed`, `closed`.
    public func standBy(_ standby: StandbyWord) throws(LogError) {
        let key = try openReading().layout.standby(standby.address)
        _ = try transact(
            EtcdTransaction(success: [.put(key, standby.value(at: key))]), "Standing by")
    }

    /// Watches what the one that serves says.
    ///
    /// - Parameter tell: Called on a thread of the log's own when that may have changed.
    public func watchServing(_ tell: @escaping @Sendable () -> Void) {
        watch(\.serving, tell)
    }

    /// Says that a sequencer stands by no more.
    ///
    /// - Parameter address: Where nodes reached it.
    /// - Throws: `unreachable`, `denied`, `failed`, `closed`.
    public func standDown(_ address: String) throws(LogError) {
        let key = try openReading().layout.standby(address)
        _ = try transact(EtcdTransaction(success: [.delete(.key(key))]), "Standing by no more")
    }
}

/// Who claims a log that several may.
struct EtcdCandidate {
    /// The newest claim, as it was found.
    let former: Epoch
    /// Where nodes reach this one.
    let address: String
}

/// Says that a tenure serves, and reads who stands by, in one transaction that compares the claim.
final class EtcdHerald: TenureHerald {
    private static let answerMax = Duration.seconds(1)
    private static let callMax = Duration.seconds(1)
    /// How long a sequencer that stands by may be silent to count as one, and until it is forgotten.
    private static let silenceMax = Duration.seconds(3)
    private static let memoryMax = Duration.seconds(10)
    private static let standbysMax = 64
    /// After how many words etcd gives up the history of what was said. An append of the log does as well.
    private static let compactCount = 2_000

    private let reading: EtcdReading
    private let claim: EtcdTenure
    /// What each has said, by its address.
    private var heard: [String: Heard] = [:]
    private var count = 0
    private var patience = EtcdPatience(upTo: answerMax)

    private struct Heard {
        /// What it said last, and since when it says the same.
        var word: StandbyWord
        var since: Duration
        /// Whether it has said something else since this tenure heard of it: before that, it may be long gone.
        var isThere = false
    }

    init(_ settings: EtcdLogSettings, _ claim: EtcdTenure) throws(LogError) {
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
        // Who serves does not stand by.
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
            throw LogError(error, "Saying who serves")
        }
        patience.took(reading.client.now - now)
        guard answer.succeeded else {
            guard let pair = answer.pair(0), let standing = EtcdTenure(pair.value, at: pair.key)
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

    /// While nobody appends, nobody else has etcd give up what was said before.
    private func compact(to revision: UInt64) {
        count += 1
        guard count >= Self.compactCount else { return }
        count = 0
        // What can't be given up now is given up next time.
        try? reading.client.compact(to: revision, isAwaited: false)
    }
}
