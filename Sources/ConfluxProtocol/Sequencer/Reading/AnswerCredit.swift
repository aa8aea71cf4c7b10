import ConfluxHashing
import ConfluxVocabulary

/// Bounds the bytes of long answers that are on their way to each connection: answers to fetches,
/// loads and questions (rule 40).
///
/// A connection's queue drops what it has no room for, and an answer may have megabytes. Without a
/// bound, a node that asks and never reads would make the sequencer read and drop data without end.
/// So each long answer carries a *delivery tag*. Each later request acknowledges the newest tag
/// that the node has read on this connection. That acknowledges all earlier answers, too, since
/// answers arrive in order. Tags can't be guessed, so no node can acknowledge an answer that it has
/// not read.
struct AnswerCredit: Sendable {
    private struct Answer: Sendable {
        var tag: UInt64
        var byteCount: Int
    }

    /// What one connection has not acknowledged, oldest first. *Invariant*: never empty.
    private struct Queue: Sendable {
        var answers: [Answer] = []
        var byteCount = 0
    }

    /// The most bytes for one connection. Answers under way may exceed it. *At the bound* its
    /// fetches and loads get no answer and are repeated, and its questions fail. The bound is
    /// several answers of the largest size, so that an honest node never reaches it.
    static let bytesMax = 32 << 20
    /// The least that an answer counts for. Each answer costs something to keep and to find,
    /// however short it is.
    static let byteCountMin = 4 << 10

    private var queues: [ConnectionID: Queue] = [:]
    /// *Invariant*: no number is used twice, so that no tag is given twice.
    private var nextNumber: UInt64 = 1
    private let secret: Nonce

    /// - Parameter secret: The secret from which tags are derived, so that nobody can guess them.
    init(secret: Nonce) {
        self.secret = secret
    }

    /// Whether a further answer may be sent.
    func hasRoom(for connection: ConnectionID) -> Bool { byteCount(of: connection) < Self.bytesMax }

    /// The bytes that a connection has not acknowledged.
    func byteCount(of connection: ConnectionID) -> Int { queues[connection]?.byteCount ?? 0 }

    /// How many connections have unacknowledged answers.
    var count: Int { queues.count }

    /// Counts an answer that is being sent.
    ///
    /// - Returns: Its delivery tag.
    mutating func send(_ byteCount: Int, to connection: ConnectionID) -> UInt64 {
        let tag = tag(of: nextNumber)
        nextNumber += 1
        let cost = max(byteCount, Self.byteCountMin)
        queues[connection, default: Queue()].answers.append(Answer(tag: tag, byteCount: cost))
        queues[connection]?.byteCount += cost
        return tag
    }

    /// A hash of the secret and the number: a node that has seen some tags can't compute others.
    private func tag(of number: UInt64) -> UInt64 {
        var hasher = DigestHasher()
        for word in [secret.high, secret.low, number] { hasher.update(word) }
        return hasher.finish().number
    }

    /// A request acknowledges an answer and all answers before it. A tag of another connection, or
    /// one that was acknowledged before, has no effect.
    mutating func acknowledge(_ tag: UInt64, on connection: ConnectionID) {
        guard let queue = queues[connection],
            let index = queue.answers.firstIndex(where: { $0.tag == tag })
        else { return }
        keep(Array(queue.answers.dropFirst(index + 1)), on: connection)
    }

    /// An answer was not sent, so nobody will acknowledge it.
    mutating func lose(_ tag: UInt64, on connection: ConnectionID) {
        guard let queue = queues[connection] else { return }
        keep(queue.answers.filter { $0.tag != tag }, on: connection)
    }

    /// The connection has ended.
    mutating func end(_ connection: ConnectionID) { queues[connection] = nil }

    private mutating func keep(_ answers: [Answer], on connection: ConnectionID) {
        if answers.isEmpty {
            queues[connection] = nil
        } else {
            queues[connection]?.answers = answers
            queues[connection]?.byteCount = answers.reduce(0) { $0 + $1.byteCount }
        }
    }
}
