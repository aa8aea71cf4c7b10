import ConfluxLog
import ConfluxVocabulary

/// A small value: words, of which the last one is a checksum of the key and of the other words.
///
/// `etcdctl get` shows it as text. The same words under the same key give the same bytes, so that
/// transactions can compare it.
struct EtcdText {
    var words: [String]

    init(_ words: [String]) {
        self.words = words
    }

    /// nil if the value is not what was written under the key.
    init?(_ value: Bytes, at key: String) {
        guard let text = try? String(utf8: value) else { return nil }
        let words = text.split(separator: " ").map(String.init)
        guard let sum = words.last else { return nil }
        self.init(words.dropLast())
        guard sum == checksum(at: key) else { return nil }
    }

    func value(at key: String) -> Bytes {
        Array((words + [checksum(at: key)]).joined(separator: " ").utf8)[...]
    }

    private func checksum(at key: String) -> String {
        Checksum.text(Checksum.hash("\(key) \(words.joined(separator: " "))"))
    }

    func number(_ index: Int) -> UInt64? { index < words.count ? UInt64(words[index]) : nil }
    func identifier(_ index: Int) -> Identifier? {
        index < words.count ? Identifier(words[index]) : nil
    }
    func digest(_ index: Int) -> Digest? { index < words.count ? Digest(words[index]) : nil }
    func hash(_ index: Int) -> ChainHash? { index < words.count ? ChainHash(words[index]) : nil }
}

/// The term that may append: the value of `epoch`.
struct EtcdTerm: Equatable {
    let epoch: Epoch
    /// Distinguishes two claims.
    let nonce: Nonce

    init(epoch: Epoch, nonce: Nonce) {
        self.epoch = epoch
        self.nonce = nonce
    }

    init?(_ value: Bytes, at key: String) {
        guard let text = EtcdText(value, at: key), let epoch = text.number(0),
            let nonce = text.identifier(1)
        else { return nil }
        self.init(epoch: Epoch(epoch), nonce: nonce)
    }

    func value(at key: String) -> Bytes {
        EtcdText(["\(epoch)", "\(nonce)"]).value(at: key)
    }
}

/// The last change beside the commits: the value of `change`. A claim counts as a change.
struct EtcdChange: Equatable {
    /// Unique to this change.
    let nonce: Nonce

    init(nonce: Nonce) {
        self.nonce = nonce
    }

    init?(_ value: Bytes, at key: String) {
        guard let nonce = EtcdText(value, at: key)?.identifier(0) else { return nil }
        self.init(nonce: nonce)
    }

    func value(at key: String) -> Bytes { EtcdText(["\(nonce)"]).value(at: key) }
}

/// Where the log ends: the value of `end`.
struct EtcdEnd: Equatable {
    /// The last number; `zero` in an empty log.
    let last: SequenceNumber
    /// The epoch of the last commit.
    let epoch: Epoch
    /// The hash of the last commit, which covers all commits before it.
    let hash: ChainHash

    init(last: SequenceNumber, epoch: Epoch, hash: ChainHash) {
        self.last = last
        self.epoch = epoch
        self.hash = hash
    }

    init?(_ value: Bytes, at key: String) {
        guard let text = EtcdText(value, at: key), let last = text.number(0),
            let epoch = text.number(1), let hash = text.hash(2)
        else { return nil }
        self.init(last: SequenceNumber(last), epoch: Epoch(epoch), hash: hash)
    }

    func value(at key: String) -> Bytes {
        EtcdText(["\(last)", "\(epoch)", "\(hash)"]).value(at: key)
    }
}

/// Where the log begins: the value of `floor`.
struct EtcdFloor: Equatable {
    let first: SequenceNumber
    /// The hash of the commit before the floor.
    let hash: ChainHash

    init(first: SequenceNumber, hash: ChainHash) {
        self.first = first
        self.hash = hash
    }

    init?(_ value: Bytes, at key: String) {
        guard let text = EtcdText(value, at: key), let first = text.number(0),
            let hash = text.hash(1)
        else { return nil }
        self.init(first: SequenceNumber(first), hash: hash)
    }

    func value(at key: String) -> Bytes { EtcdText(["\(first)", "\(hash)"]).value(at: key) }
}

/// The identity of the log: the value of `meta`.
struct EtcdMeta {
    let version: UInt64
    let log: LogID
    /// Identifies an unfinished copy, which is not a log; nil for a log.
    let copy: Nonce?

    private static let logWord = "conflux-log"
    /// A version that does not know copies takes this for another program's key.
    private static let copyWord = "conflux-copy"

    init(version: UInt64, log: LogID, copy: Nonce? = nil) {
        self.version = version
        self.log = log
        self.copy = copy
    }

    /// nil if it is not a Conflux log. A newer version may have more words.
    init?(_ value: Bytes, at key: String) {
        guard let text = EtcdText(value, at: key), let word = text.words.first,
            [Self.logWord, Self.copyWord].contains(word), let version = text.number(1),
            let log = text.identifier(2)
        else { return nil }
        let copy = word == Self.copyWord ? text.identifier(3) : nil
        guard word == Self.logWord || copy != nil else { return nil }
        self.init(version: version, log: log, copy: copy)
    }

    func value(at key: String) -> Bytes {
        let word = copy == nil ? Self.logWord : Self.copyWord
        return EtcdText([word, "\(version)", "\(log)"] + (copy.map { ["\($0)"] } ?? []))
            .value(at: key)
    }
}
