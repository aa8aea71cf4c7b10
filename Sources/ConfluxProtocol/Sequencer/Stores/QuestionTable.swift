import ConfluxVocabulary

/// The questions that wait for answers of nodes. Bounded in number and in time; and what was
/// answered, which is bounded in bytes for each who asks.
struct QuestionTable: Sendable {
    private struct Pending: Sendable {
        var asker: ConnectionID
        var askersNumber: UInt64
        /// The nodes that have not answered. *Invariant*: never empty.
        var awaited: Set<Incarnation>
        var deadline: Duration
        /// Whether the first good answer ends it.
        var endsWithFirst: Bool
    }

    private var pending: [UInt64: Pending] = [:]
    /// *Invariant*: no number is used twice; 0 is the question whether a node is there.
    private var nextNumber: UInt64 = 1
    /// What was answered and may not have been read. *Use*: to bound what a connection's queue holds.
    private(set) var unread = UnreadAnswers()

    var count: Int { pending.count }
    var nextDeadline: Duration? { pending.values.lazy.map(\.deadline).min() }

    /// Sends a question on to nodes.
    mutating func ask(
        _ question: Question, by asker: ConnectionID,
        of nodes: [(Incarnation, ConnectionID)], until deadline: Duration, endsWithFirst: Bool,
        into effects: inout [SequencerEffect]
    ) {
        let number = nextNumber
        nextNumber += 1
        pending[number] = Pending(
            asker: asker, askersNumber: question.number, awaited: Set(nodes.map(\.0)),
            deadline: deadline, endsWithFirst: endsWithFirst)
        for (_, connection) in nodes {
            let forwarded = Question(
                number: number, patience: question.patience, body: question.body)
            effects.append(.send(.question(forwarded), to: connection))
        }
    }

    /// A connection asks something: does it show what it has read?
    mutating func heard(_ question: Question, from asker: ConnectionID) {
        guard case .observe(let store, _, let after) = question.body, after > .zero else { return }
        unread.goOn(behind: .state(store, after), on: asker)
    }

    /// Whether a connection may be answered at length: it has not left too much unread.
    func hasRoom(for asker: ConnectionID) -> Bool { unread.hasRoom(for: asker) }

    /// Sends an answer, or, where the asker has left too much unread, a failure instead of it.
    mutating func send(
        _ answer: Answer, to asker: ConnectionID, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        var answer = answer
        if hasRoom(for: asker) {
            unread.sent(answer.mark, byteCount: answer.byteCount, to: asker, at: now)
        } else {
            answer.body = .failed(.tableFull, message: Self.unreadText)
        }
        effects.append(.send(.answer(answer), to: asker))
    }

    static let unreadText =
        "this connection has more answers on the way than it may; read them, and ask again later"

    mutating func expireUnread(sentBefore limit: Duration) {
        unread.expire(sentBefore: limit)
    }

    /// Sends an answer on to who asked.
    mutating func answer(
        _ answer: Answer, by incarnation: Incarnation, named name: Name?, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        guard var waiting = pending[answer.number],
            waiting.awaited.remove(incarnation) != nil
        else { return }
        let isFailure = if case .failed = answer.body { true } else { false }
        // Where one good answer is enough, a failure counts only when nobody is left to ask.
        if waiting.endsWithFirst, isFailure, !waiting.awaited.isEmpty {
            pending[answer.number] = waiting
            return
        }
        let isLast = waiting.awaited.isEmpty || waiting.endsWithFirst
        pending[answer.number] = isLast ? nil : waiting
        let forwarded = Answer(
            number: waiting.askersNumber, isLast: isLast, node: name, body: answer.body)
        send(forwarded, to: waiting.asker, at: now, into: &effects)
    }

    /// A node is gone: nobody waits for it.
    mutating func lose(
        _ incarnation: Incarnation, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        for number in pending.keys.sorted()
        where pending[number]?.awaited.contains(incarnation) == true {
            let gone = Answer(
                number: number, isLast: false, node: nil,
                body: .failed(.notHosted, message: "the node that was asked has left"))
            answer(gone, by: incarnation, named: nil, at: now, into: &effects)
        }
    }

    mutating func abandon(askedBy asker: ConnectionID) {
        pending = pending.filter { $0.value.asker != asker }
    }

    mutating func expire(at now: Duration, into effects: inout [SequencerEffect]) {
        for (number, waiting) in pending.sorted(by: { $0.key < $1.key })
        where waiting.deadline <= now {
            pending[number] = nil
            let late = Answer(
                number: waiting.askersNumber, isLast: true, node: nil,
                body: .failed(.timedOut, message: "no answer in time; ask again"))
            send(late, to: waiting.asker, at: now, into: &effects)
        }
    }
}

extension SequencerMachine {
    mutating func ask(
        _ question: Question, from asker: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        func reply(_ body: Answer.Body, into effects: inout [SequencerEffect]) {
            let answer = Answer(number: question.number, isLast: true, node: nil, body: body)
            questions.send(answer, to: asker, at: now.monotonic, into: &effects)
        }
        questions.heard(question, from: asker)
        // So that nobody looks for, or sends, an answer that would not be passed on.
        guard questions.hasRoom(for: asker) else {
            reply(.failed(.tableFull, message: QuestionTable.unreadText), into: &effects)
            return
        }
        let asked: [Session]
        var endsWithFirst = false
        switch question.body {
        case .alive:
            reply(.alive, into: &effects)
            return
        case .status:
            // Of who hosts how much no bound tells that it fits into a frame.
            let bytes = statusBytes
            let fits = bytes <= WireLimits.standard.frameBytesMax - 4_096
            let text = "the status has up to \(bytes) bytes, and a frame has room for fewer"
            reply(fits ? .status(status) : .failed(.tooLarge, message: text), into: &effects)
            return
        case .observe(let store, let node, _):
            let hosts = hosts { $0.hosted[store] != nil }
            guard let node else {
                asked = hosts
                break
            }
            guard let holder = sessions.holder(of: node) else {
                let names = hosts.compactMap { $0.name?.text }.joined(separator: ", ")
                let text =
                    "no live node is named \(node); "
                    + (names.isEmpty ? "nobody hosts \(store)" : "\(store) is hosted by: \(names)")
                reply(.failed(.unknownNode, message: text), into: &effects)
                return
            }
            asked = hosts.filter { $0.incarnation == holder }
        case .applied(_, let target):
            endsWithFirst = true
            asked = hosts { session in
                switch target {
                case .store(let name): session.hosted[name] != nil
                case .state(let state):
                    session.bridged.contains(state)
                        || session.hosted.keys.contains { $0.state == state }
                case .event: false
                }
            }
        }
        guard !asked.isEmpty else {
            let text = "no live node hosts what was asked for; known are: \(directory.knownNames)"
            reply(.failed(.notHosted, message: text), into: &effects)
            return
        }
        guard questions.count < settings.questionsMax else {
            let text = "the sequencer forwards as many questions as it may; ask again later"
            reply(.failed(.tableFull, message: text), into: &effects)
            return
        }
        let patience = min(max(question.patience, .zero), settings.questionPatienceMax)
        questions.ask(
            question, by: asker,
            of: asked.compactMap { session in
                session.connection.map { (session.incarnation, $0) }
            },
            until: now.monotonic + patience, endsWithFirst: endsWithFirst, into: &effects)
    }

    mutating func answer(
        _ answer: Answer, by incarnation: Incarnation, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        guard answer.body != .alive else {
            resolveInquiry(heldBy: incarnation, into: &effects)
            return
        }
        questions.answer(
            answer, by: incarnation, named: sessions[incarnation]?.name, at: now, into: &effects)
    }

    /// The nodes that can be asked, by incarnation.
    private func hosts(where isHost: (Session) -> Bool) -> [Session] {
        sessions.all.filter { $0.presence == .live && $0.connection != nil && isHost($0) }
            .sorted { $0.incarnation < $1.incarnation }
    }

    /// How many bytes the status has, and not fewer.
    private var statusBytes: Int {
        // A name has a byte for its length.
        func bytes(of name: Name) -> Int { name.text.utf8.count + 1 }
        func bytes(of store: StoreName) -> Int {
            bytes(of: store.state) + bytes(of: store.instance)
        }
        let sessionBytes = sessions.all.reduce(0) { sum, session in
            session.hosted.keys.reduce(sum + 128) { $0 + bytes(of: $1) }
                + 16 * session.stopped.count
                + session.bridged.reduce(0) { $0 + bytes(of: $1) }
        }
        let divergenceBytes = digests.divergences.values.reduce(sessionBytes) {
            $0 + 64 + 8 * $1.nodes.count + ($1.path?.utf8.count ?? 0)
        }
        return directory.stores.keys.reduce(divergenceBytes) { $0 + 48 + bytes(of: $1) }
    }

    private var status: SequencerStatus {
        var hosts: [StoreName: UInt32] = [:]
        var stopped: [StoreName: [StoppedReplica]] = [:]
        let sessions = sessions.all.sorted { $0.incarnation < $1.incarnation }
        for session in sessions where session.presence == .live {
            for store in session.hosted.keys { hosts[store, default: 0] += 1 }
            for (store, sequence) in session.stopped {
                stopped[store, default: []].append(
                    StoppedReplica(node: session.incarnation, sequence: sequence))
            }
        }
        return SequencerStatus(
            log: tenure.log, epoch: tenure.epoch, last: tenure.last, floor: tenure.floor,
            checkpoint: checkpoints.last ?? .zero,
            sessions: sessions.filter { !$0.isEnding }.map { session in
                SessionStatus(
                    incarnation: session.incarnation, name: session.name,
                    isLive: session.presence == .live, applied: session.applied,
                    lastCounter: session.ledger.lastCounter,
                    hosted: session.hosted.keys.sorted(), bridged: session.bridged.sorted())
            },
            stores: directory.stores.sorted { $0.key < $1.key }.map { name, store in
                StoreStatus(
                    store: name, life: store.life, schemaVersion: store.schemaVersion,
                    hosts: hosts[name] ?? 0, snapshot: store.baseSequence,
                    isFrozen: store.isFrozen, divergence: digests.divergences[name],
                    stopped: stopped[name] ?? [])
            })
    }
}

extension Answer {
    /// By what the asker shows that it has read the answer.
    fileprivate var mark: UnreadAnswers.Mark {
        if case .state(let store, let sequence, _) = body { .state(store, sequence) } else { .none }
    }

    /// About how many bytes the answer has, and not fewer.
    fileprivate var byteCount: Int {
        let head = 128
        return switch body {
        case .state(_, _, let bytes): head + bytes.count
        case .refused(let message), .failed(_, let message): head + message.utf8.count
        case .applied, .alive: head
        case .status(let status): head + status.byteCount
        }
    }
}

extension SequencerStatus {
    fileprivate var byteCount: Int {
        // A name has 65 bytes at most.
        let sessionBytes = sessions.reduce(0) { sum, session in
            sum + 128 + 130 * session.hosted.count + 65 * session.bridged.count
        }
        return stores.reduce(sessionBytes) { $0 + 160 + 16 * $1.stopped.count }
    }
}
