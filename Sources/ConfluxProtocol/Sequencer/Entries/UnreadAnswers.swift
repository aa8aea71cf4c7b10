import ConfluxVocabulary

/// Answers to fetches, or to questions, that may still wait in the queues of their connections.
///
/// A queue is bounded in messages, and an answer may have megabytes: a node that asks and never
/// reads would have the sequencer hold them all. Nothing tells when a message leaves a queue, but
/// what a node asks for does: a fetch that begins right behind an answer, or a question for what
/// follows a state, shows that it was read, and with it every answer before, since they arrive in
/// order. What nobody goes on from is taken for read after a time in which a connection that reads
/// nothing has ended.
struct UnreadAnswers: Sendable {
    /// By what a later request shows that an answer was read.
    enum Mark: Sendable, Equatable {
        /// Commits up to this number.
        case commits(SequenceNumber)
        /// A store's state at this number.
        case state(StoreName, SequenceNumber)
        /// A snapshot, up to this place in it.
        case part(SnapshotPlace, UInt64)
        /// Nothing goes on from it.
        case none
    }

    private struct Answer: Sendable {
        var mark: Mark
        var byteCount: Int
        var sentAt: Duration
    }

    /// What one connection may not have read, oldest first. *Invariant*: never empty.
    private struct Queue: Sendable {
        private(set) var answers: [Answer] = []
        /// Their sum.
        private(set) var byteCount = 0

        mutating func append(_ answer: Answer) {
            answers.append(answer)
            byteCount += answer.byteCount
        }

        mutating func replace(_ rest: [Answer]) {
            answers = rest
            byteCount = rest.reduce(0) { $0 + $1.byteCount }
        }
    }

    /// The most bytes for one connection, but for those of the answers under way. *At the bound* its
    /// fetches are left unanswered, and asked again; its questions get a failure. It is some answers
    /// of the largest size, so that a node whose stores begin to catch up one after the other, and
    /// which leaves answers that it read behind, is not held up.
    static let bytesMax = 32 << 20
    /// What an answer counts for at least: it costs something to keep, however short it is.
    private static let byteCountMin = 512

    private var queues: [ConnectionID: Queue] = [:]

    /// Whether nothing is remembered.
    var isEmpty: Bool { queues.isEmpty }

    mutating func sent(
        _ mark: Mark, byteCount: Int, to connection: ConnectionID, at now: Duration
    ) {
        queues[connection, default: Queue()].append(
            Answer(mark: mark, byteCount: max(byteCount, Self.byteCountMin), sentAt: now))
    }

    /// A node asks for what begins at a number.
    ///
    /// - Returns: Whether there is room for the answer.
    mutating func admits(
        fetchFrom from: SequenceNumber, on connection: ConnectionID
    ) -> Bool {
        read(on: connection) { $0 == .commits(SequenceNumber(max(from.rawValue, 1) - 1)) }
        // What the feed brought meanwhile lets a node begin further on.
        keep(on: connection) { answer in
            if case .commits(let last) = answer.mark { last >= from } else { true }
        }
        return hasRoom(for: connection)
    }

    /// A node asks for what follows a store's state, or a part of a snapshot.
    mutating func goOn(behind mark: Mark, on connection: ConnectionID) {
        read(on: connection) { $0 == mark }
    }

    /// Whether there is room for a further answer.
    func hasRoom(for connection: ConnectionID) -> Bool {
        (queues[connection]?.byteCount ?? 0) < Self.bytesMax
    }

    /// Forgets what was sent before a time.
    mutating func expire(sentBefore limit: Duration) {
        for connection in Array(queues.keys) {
            keep(on: connection) { $0.sentAt >= limit }
        }
    }

    /// The last answer of which this is true was read, and every one before it.
    private mutating func read(on connection: ConnectionID, _ isRead: (Mark) -> Bool) {
        guard let answers = queues[connection]?.answers,
            let index = answers.lastIndex(where: { isRead($0.mark) })
        else { return }
        replace(Array(answers.dropFirst(index + 1)), on: connection)
    }

    private mutating func keep(on connection: ConnectionID, where isUnread: (Answer) -> Bool) {
        guard let answers = queues[connection]?.answers else { return }
        let rest = answers.filter(isUnread)
        if rest.count < answers.count { replace(rest, on: connection) }
    }

    private mutating func replace(_ rest: [Answer], on connection: ConnectionID) {
        if rest.isEmpty {
            queues[connection] = nil
        } else {
            queues[connection]?.replace(rest)
        }
    }
}
