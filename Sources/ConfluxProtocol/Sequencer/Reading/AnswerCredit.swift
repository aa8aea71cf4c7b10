import ConfluxVocabulary

/// How many bytes of long answers may be on their way to each connection: to fetches, loads and
/// questions (rule 40).
///
/// A connection's queue loses what it has no room for, and an answer may have megabytes: a node that asks
/// and never reads would have the sequencer read and lose for it without end. So each long answer carries a *delivery
/// tag*, and each later request acknowledges the newest tag that the node has read on this connection,
/// and with it all before, since answers arrive in order. Tags can't be guessed: nobody acknowledges
/// what it has not read.
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

    /// The most bytes for one connection, but for those of the answers under way. *At the bound* its
    /// fetches and loads are left unanswered, and asked again; its questions get a failure. It is
    /// some answers of the largest size, so that an honest node never meets it.
    static let bytesMax = 32 << 20
    /// What an answer counts for at least: it costs something to keep, and to look for, however short
    /// it is.
    static let byteCountMin = 4 << 10

    private var queues: [ConnectionID: Queue] = [:]
    /// *Invariant*: no number is used twice, so that no tag is given twice.
    private var nextNumber: UInt64 = 1
    private let secret: Nonce

    /// - Parameter secret: What makes tags that nobody can guess.
    init(secret: Nonce) {
        self.secret = secret
    }

    /// Whether a further answer may be sent.
    func hasRoom(for connection: ConnectionID) -> Bool { byteCount(of: connection) < Self.bytesMax }

    /// What a connection has not acknowledged.
    func byteCount(of connection: ConnectionID) -> Int { queues[connection]?.byteCount ?? 0 }

    /// How many connections have not acknowledged everything.
    var count: Int { queues.count }

    /// An answer is sent.
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

    /// Who sees some tags can't compute another one.
    private func tag(of number: UInt64) -> UInt64 {
        let message = [secret.high, secret.low, number].flatMap { word in
            stride(from: 0, to: 64, by: 8).map { UInt8(truncatingIfNeeded: word >> $0) }
        }
        let words = SHA256.hash(message)
        return UInt64(words[0]) << 32 | UInt64(words[1])
    }

    /// A request acknowledges an answer, and all before it. A tag of another connection, or one that
    /// was acknowledged before, says nothing.
    mutating func acknowledge(_ tag: UInt64, on connection: ConnectionID) {
        guard let queue = queues[connection],
            let index = queue.answers.firstIndex(where: { $0.tag == tag })
        else { return }
        keep(Array(queue.answers.dropFirst(index + 1)), on: connection)
    }

    /// An answer was not sent: nobody will read it.
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
