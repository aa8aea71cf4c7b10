import Conflux
import ConfluxHashing
import ConfluxVocabulary

/// Why an entry had no effect on a store.
enum EntryFailure: Sendable {
    /// The state's check refused it, or its payload is not an action of the state.
    case refused(any Error)
    /// It was skipped (rule 38).
    case skipped
    /// It is an event of which the state makes no action, or none that the store's version has.
    case passedOver
    /// A newer program wrote it. Only a store that is not replicated continues after such an entry.
    case notUnderstood(message: String)
}

/// An entry that had no effect on a store.
struct NoEffect: Sendable {
    var sequence: SequenceNumber
    var why: EntryFailure
    /// Who dispatched it.
    var incarnation: Incarnation
}

/// The effect of an entry on one store, or on all stores that it concerned.
enum Effect {
    case applied
    /// It changed nothing. The error is the one that the state's check threw, if it is still kept.
    case refused(message: String, (any Error)?)
    /// A store stopped and did not apply it.
    case stopped(at: SequenceNumber?, message: String)
    /// It may have been refused. A snapshot replaced it, or it was too long ago.
    case unknown
    /// It was for none of the stores.
    case nobody

    /// The effect on two stores that an entry may concern.
    static func merged(_ one: Effect, _ other: Effect) -> Effect {
        one.rank >= other.rank ? one : other
    }

    private var rank: Int {
        switch self {
        case .applied: 4
        case .unknown: 3
        case .stopped: 2
        case .refused: 1
        case .nobody: 0
        }
    }
}

/// The entries that had no effect on one store here, and why.
///
///     ── unknown ──▶ unknownThrough ── whatever is not in here had its effect ──▶
///
/// *Invariants*:
/// - Numbers ascend. An entry above ``unknownThrough`` that is not in here had its effect, if the store
///   has reached it and the entry was for the store.
/// - Messages have ``bytesMax`` bytes at most. *At the bound* the oldest are forgotten, and
///   ``unknownThrough`` rises to their numbers: an answer is never wrong.
///
/// All questions are answered from these entries alone, also those of the node that dispatched an entry. The
/// errors that are kept for the dispatcher decide nothing.
struct NoEffects {
    private struct Entry {
        var sequence: SequenceNumber
        var effect: Effect
        var byteCount: Int
    }

    /// The longest message that is kept. Some contain what a program put into its error.
    static let messageBytesMax = 4_096
    /// The bytes of an entry besides its message.
    private static let entryBytes = 64

    let bytesMax: Int
    private var entries: [Entry] = []
    /// The entries before this index are forgotten.
    private var head = 0
    private(set) var byteCount = 0
    /// The effect of entries up to this number that are not in here is unknown.
    private(set) var unknownThrough = SequenceNumber.zero
    /// Hashes the refused and skipped numbers since the last digest point (rule 18).
    private var hasher = DigestHasher()

    init(bytesMax: Int) {
        self.bytesMax = bytesMax
    }

    /// Adds entries.
    ///
    /// - Parameters:
    ///   - failures: The entries, ascending.
    ///   - own: The sessions of this node. The errors of their actions are kept as they are.
    mutating func add(_ failures: [NoEffect], own: [Incarnation]) {
        for failure in failures {
            var effect = Self.effect(of: failure)
            var byteCount = Self.entryBytes
            switch effect {
            case .refused(let message, let error):
                let message = error.map { Self.text($0) } ?? message
                let isOwn = own.contains(failure.incarnation)
                effect = .refused(message: message, isOwn ? error : nil)
                byteCount += message.utf8.count
                hasher.update(failure.sequence.rawValue)
            case .stopped(_, let message): byteCount += message.utf8.count
            case .applied, .unknown, .nobody: break
            }
            var index = entries.count
            // Several lanes may report out of order.
            while index > head, entries[index - 1].sequence > failure.sequence { index -= 1 }
            entries.insert(
                Entry(sequence: failure.sequence, effect: effect, byteCount: byteCount), at: index)
            self.byteCount += byteCount
        }
        shrink()
    }

    private static func effect(of failure: NoEffect) -> Effect {
        switch failure.why {
        case .refused(let error): .refused(message: "", error)
        case .skipped: .refused(message: skippedText, nil)
        case .passedOver: .nobody
        case .notUnderstood(let message): .stopped(at: failure.sequence, message: message)
        }
    }

    private static let skippedText = "the entry was skipped"

    private static func text(_ error: any Error) -> String {
        let text = "\(error)"
        guard text.utf8.count > messageBytesMax else { return text }
        return String(text.unicodeScalars.prefix(messageBytesMax / 4)) + "…"
    }

    private mutating func shrink() {
        while byteCount > bytesMax, head < entries.count {
            byteCount -= entries[head].byteCount
            forget(through: entries[head].sequence)
            entries[head].effect = .unknown
            head += 1
        }
        if head > 32, head * 2 > entries.count {
            entries.removeFirst(head)
            head = 0
        }
    }

    /// Notes that a snapshot replaced the entries up to this number. Nothing above it is applied yet.
    mutating func jump(through sequence: SequenceNumber) {
        while entries.count > head, let last = entries.last, last.sequence > sequence {
            byteCount -= last.byteCount
            entries.removeLast()
        }
        forget(through: sequence)
        hasher = DigestHasher()
    }

    /// Makes the effects of entries up to this number unknown, except for those in here.
    mutating func forget(through sequence: SequenceNumber) {
        unknownThrough = max(unknownThrough, sequence)
    }

    /// Takes the entries without effect and the reasons, and forgets them.
    mutating func takeAll() -> [(sequence: SequenceNumber, message: String)] {
        guard entries.count > head else { return [] }
        defer {
            entries = []
            head = 0
            byteCount = 0
        }
        return entries[head...].compactMap { entry in
            switch entry.effect {
            case .refused(let message, let error): (entry.sequence, error.map(Self.text) ?? message)
            case .stopped(_, let message): (entry.sequence, message)
            case .applied, .unknown, .nobody: nil
            }
        }
    }

    /// Takes the digest of the numbers without effect. Later numbers count for the next point.
    mutating func takeDigest() -> Digest {
        defer { hasher = DigestHasher() }
        return hasher.finish()
    }

    /// The effect of an entry that the store has reached and that was for it.
    func effect(of sequence: SequenceNumber) -> Effect {
        let index = index(from: sequence)
        if index < entries.count, entries[index].sequence == sequence {
            return entries[index].effect
        }
        return sequence <= unknownThrough ? .unknown : .applied
    }

    /// Whether all entries in this range had their effect. The same as ``effect(of:)`` for each,
    /// but faster.
    func isPlain(_ first: SequenceNumber, _ last: SequenceNumber) -> Bool {
        guard unknownThrough < first else { return false }
        let index = index(from: first)
        return index == entries.count || entries[index].sequence > last
    }

    /// Forgets the errors of these entries, after their dispatchers got them. They may hold large values.
    mutating func forgetErrors(of sequences: ClosedRange<SequenceNumber>) {
        var index = index(from: sequences.lowerBound)
        while index < entries.count, entries[index].sequence <= sequences.upperBound {
            if case .refused(let message, .some) = entries[index].effect {
                entries[index].effect = .refused(message: message, nil)
            }
            index += 1
        }
    }

    /// The index of the first entry that is not below a number.
    private func index(from sequence: SequenceNumber) -> Int {
        entries[head...].partitioningIndex { $0.sequence >= sequence }
    }
}
