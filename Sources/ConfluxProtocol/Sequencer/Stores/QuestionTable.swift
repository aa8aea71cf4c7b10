import ConfluxVocabulary

/// The questions that wait for answers of nodes. Their number and their time are bounded.
struct QuestionTable: Sendable {
    private struct Pending: Sendable {
        var asker: ConnectionID
        var askersNumber: UInt64
        /// The question that the nodes get.
        var forwarded: Question
        /// The nodes that have not answered. *Invariant*: never empty.
        var awaited: Set<Incarnation>
        var deadline: Duration
        /// Whether the first answer that says what became of the entry ends the question.
        var endsWithFirst: Bool
        /// The best answer so far; nil if there is none.
        var best: Answer?
        /// Whose share of the questions it counts for.
        let sharer: Sharer
    }

    private var pending: [UInt64: Pending] = [:]
    /// *Invariant*: counts each question in `pending` once.
    private var shares = Shares<Sharer>()
    /// *Invariant*: no number is used twice, not even in another term. Otherwise a late answer
    /// would answer another question. Number 0 stands for the question whether a node is alive.
    private var nextNumber: UInt64

    /// Makes an empty table.
    ///
    /// - Parameter nonce: The term's random nonce. Numbers begin with a part of it.
    init(of nonce: Nonce) {
        nextNumber = nonce.low
    }

    var count: Int { pending.count }
    var nextDeadline: Duration? { pending.values.lazy.map(\.deadline).min() }

    /// Whether another question may wait.
    func hasRoom(for sharer: Sharer, of most: Int) -> Bool { shares.hasRoom(for: sharer, of: most) }

    /// Ends a question.
    private mutating func end(_ number: UInt64) {
        if let ended = pending.removeValue(forKey: number) { shares.remove(of: ended.sharer) }
    }

    /// Forwards a question to nodes.
    mutating func ask(
        _ question: Question, by asker: ConnectionID, sharing sharer: Sharer,
        of nodes: [(Incarnation, ConnectionID)], until deadline: Duration, endsWithFirst: Bool,
        into effects: inout [SequencerEffect]
    ) {
        nextNumber = max(nextNumber &+ 1, 1)
        let number = nextNumber
        let forwarded = Question(
            number: number, patience: question.patience, body: question.body)
        pending[number] = Pending(
            asker: asker, askersNumber: question.number, forwarded: forwarded,
            awaited: Set(nodes.map(\.0)), deadline: deadline, endsWithFirst: endsWithFirst,
            best: nil, sharer: sharer)
        shares.add(of: sharer)
        for (_, connection) in nodes {
            effects.append(.send(.question(forwarded), to: connection))
        }
    }

    /// Repeats, after a welcome, the questions that a node has not answered. A question that
    /// reached the node between its hello and the welcome did not count there, and its answer was
    /// not sent.
    func askAgain(
        _ incarnation: Incarnation, on connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        for (_, waiting) in pending.sorted(by: { $0.key < $1.key })
        where waiting.awaited.contains(incarnation) {
            effects.append(.send(.question(waiting.forwarded), to: connection))
        }
    }

    /// A node answers.
    ///
    /// - Returns: The answer to forward, and to whom; nil if nobody waits for it, or if further
    ///   answers are awaited first.
    mutating func answer(
        _ answer: Answer, by incarnation: Incarnation, named name: Name?
    ) -> (Answer, ConnectionID)? {
        guard var waiting = pending[answer.number],
            waiting.awaited.remove(incarnation) != nil
        else { return nil }
        var forwarded = Answer(
            number: waiting.askersNumber, isLast: true, node: name, body: answer.body)
        if waiting.endsWithFirst, answer.body.rank < Answer.Body.rankMax {
            // Another node may know more: it may have applied the entry where this one did not.
            if let best = waiting.best, best.body.rank >= answer.body.rank { forwarded = best }
            waiting.best = forwarded
            guard waiting.awaited.isEmpty else {
                pending[answer.number] = waiting
                return nil
            }
        }
        forwarded.isLast = waiting.awaited.isEmpty || waiting.endsWithFirst
        if forwarded.isLast { end(answer.number) } else { pending[answer.number] = waiting }
        return (forwarded, waiting.asker)
    }

    /// A node has left, so its answers are no longer awaited.
    ///
    /// - Returns: The answers to forward instead, and to whom.
    mutating func lose(_ incarnation: Incarnation) -> [(Answer, ConnectionID)] {
        pending.keys.sorted().compactMap { number in
            guard pending[number]?.awaited.contains(incarnation) == true else { return nil }
            let gone = Answer(
                number: number, isLast: false, node: nil,
                body: .failed(.notHosted, message: "the node that was asked has left"))
            return answer(gone, by: incarnation, named: nil)
        }
    }

    /// A connection no longer waits for answers.
    mutating func abandon(askedBy asker: ConnectionID) {
        for (number, waiting) in pending where waiting.asker == asker { end(number) }
    }

    /// Ends the questions whose time is up.
    ///
    /// - Returns: The answers to send, and to whom.
    mutating func expire(at now: Duration) -> [(Answer, ConnectionID)] {
        let late = pending.sorted { $0.key < $1.key }.filter { $0.value.deadline <= now }
        return late.map { number, waiting in
            end(number)
            var late = Answer(
                number: waiting.askersNumber,
                body: .failed(.timedOut, message: "no answer in time; ask again"))
            if let best = waiting.best, case .stopped = best.body { late = best }
            return (late, waiting.asker)
        }
    }
}

extension SequencerMachine {
    mutating func ask(
        _ question: Question, from asker: ConnectionID, as principal: Principal, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        func reply(_ body: Answer.Body, into effects: inout [SequencerEffect]) {
            let answer = Answer(number: question.number, body: body)
            self.reply(answer, to: asker, into: &effects)
        }
        var question = question
        let asked: [Session]
        let subject: Target
        var endsWithFirst = false
        switch question.body {
        case .alive:
            reply(.alive, into: &effects)
            return
        case .reload:
            effects.append(.reloadKeys(asked: question.number, by: asker))
            return
        case .sequencers:
            reply(.sequencers(sequencers), into: &effects)
            return
        case .handOver(let address):
            handOver(to: address, asked: question.number, by: asker, at: now, into: &effects)
            return
        case .status, .shapes:
            // No bound guarantees that the status fits into a frame, since it lists who hosts what.
            var shapes: [ActionShapes] = []
            if case .shapes(let state) = question.body {
                shapes = directory.states.shapes(of: state)
            }
            let bytes = statusBytes + shapes.reduce(0) { $0 + 16 + $1.json.count }
            let fits = bytes <= WireLimits.standard.frameBytesMax - 4_096
            let text = "the status has up to \(bytes) bytes, and a frame has room for fewer"
            var status = status
            status.shapes = shapes
            status.health = health
            reply(fits ? .status(status) : .failed(.tooLarge, message: text), into: &effects)
            return
        case .timers(let number):
            reply(.timers(list(behind: number, for: principal.rights)), into: &effects)
            return
        case .leases(let number):
            reply(.leases(listLeases(behind: number, for: principal.rights)), into: &effects)
            return
        case .lease(let claim, let untilHeld):
            askOfClaim(
                claim, untilHeld: untilHeld, number: question.number, from: asker, into: &effects)
            return
        case .start(let store):
            guard let start = opening(of: store) else {
                reply(.failed(.notHosted, message: unknown(.store(store)).message), into: &effects)
                return
            }
            let answer = Answer(
                number: question.number, body: .start(store, start),
                earlier: directory.earlierStart(of: store))
            self.reply(answer, to: asker, into: &effects)
            return
        case .observe(let store, let node, _):
            subject = .store(store)
            let hosts = hosts(of: subject)
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
        case .applied(let sequence, let target):
            endsWithFirst = true
            subject = directory.naming(target)
            guard
                principal.rights.allow(.dispatch, subject) || principal.rights.allowReading(subject)
            else {
                let text = principal.denial(of: .dispatch, subject)
                return reply(.failed(.notAllowed, message: text), into: &effects)
            }
            question.body = .applied(sequence, subject)
            asked = hosts(of: subject)
        }
        guard !asked.isEmpty else {
            let text = isThere(subject) ? "no live node hosts \(subject)" : unknown(subject).message
            reply(.failed(.notHosted, message: text), into: &effects)
            return
        }
        let sharer = principal.sharer(on: asker)
        guard questions.hasRoom(for: sharer, of: settings.questionsMax) else {
            let text =
                "as many questions as one client may ask at once wait for answers; ask again later"
            reply(.failed(.tableFull, message: text), into: &effects)
            return
        }
        let patience = min(max(question.patience, .zero), settings.questionPatienceMax)
        questions.ask(
            question, by: asker, sharing: sharer,
            of: asked.compactMap { session in
                session.connection.map { (session.incarnation, $0) }
            },
            until: now.monotonic + patience, endsWithFirst: endsWithFirst, into: &effects)
    }

    /// Whether the target store or state is known.
    private func isThere(_ target: Target) -> Bool {
        switch target {
        case .store(let name): directory.life(of: name) != nil
        case .state, .event: target.states.contains { directory.states[$0] != nil }
        }
    }

    mutating func answer(
        _ answer: Answer, by incarnation: Incarnation, into effects: inout [SequencerEffect]
    ) {
        guard answer.body != .alive else {
            resolveInquiries(heldBy: incarnation, into: &effects)
            return
        }
        if let (answer, asker) = questions.answer(
            answer, by: incarnation, named: sessions[incarnation]?.name)
        {
            reply(answer, to: asker, into: &effects)
        }
    }

    func reply(
        _ answer: Answer, to asker: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        effects.append(.send(.answer(answer), to: asker))
    }

    /// The nodes that can be asked, by incarnation.
    private func hosts(of target: Target) -> [Session] {
        directory.hosts(of: target).sorted().compactMap { sessions[$0] }
            .filter { $0.connection != nil }
    }

    /// The bytes of the status, or more.
    private var statusBytes: Int {
        // A name has one byte for its length.
        func bytes(of name: Name) -> Int { name.text.utf8.count + 1 }
        func bytes(of store: StoreName) -> Int {
            bytes(of: store.state) + bytes(of: store.instance)
        }
        let sessionBytes = sessions.all.reduce(0) { sum, session in
            let hosting = directory.hosting[session.incarnation]
            let storeBytes = hosting?.stores.reduce(0) { $0 + bytes(of: $1) } ?? 0
            let stateBytes = hosting?.states.reduce(0) { $0 + bytes(of: $1) } ?? 0
            return sum + 128 + storeBytes + 16 * (hosting?.stopped.count ?? 0) + stateBytes
        }
        return directory.lives.lives.reduce(sessionBytes) { sum, store in
            let divergence = store.value.work.votes.divergence
            return sum + 48 + bytes(of: store.key)
                + (divergence.map { 64 + 8 * $0.nodes.count + ($0.path?.utf8.count ?? 0) } ?? 0)
        }
    }

    private var status: SequencerStatus {
        let sessions = sessions.all.sorted { $0.incarnation < $1.incarnation }
        return SequencerStatus(
            log: term.log, epoch: term.epoch, last: term.last, floor: term.floor,
            checkpoint: checkpoints.last ?? .zero,
            sessions: sessions.filter { !$0.isEnding }.map { session in
                let hosting = directory.hosting[session.incarnation]
                return SessionStatus(
                    incarnation: session.incarnation, name: session.name, owner: session.owner,
                    isLive: session.presence == .live, applied: session.applied,
                    lastCounter: session.ledger.lastCounter,
                    hosted: hosting?.stores.sorted() ?? [],
                    bridged: hosting?.states.sorted() ?? [])
            },
            stores: directory.lives.lives.sorted { $0.key < $1.key }.map { name, life in
                let store = life.record
                let stopped = life.work.stops.sorted { $0.key < $1.key }.map {
                    StoppedReplica(node: $0.key, sequence: $0.value)
                }
                return StoreStatus(
                    store: name, life: store.life, schemaVersion: store.schemaVersion,
                    hosts: UInt32(life.work.hosts.count), snapshot: store.baseSequence,
                    isFrozen: store.isFrozen, divergence: life.work.votes.divergence,
                    stopped: stopped)
            })
    }
}

extension Answer.Body {
    /// How much an answer says of what became of an entry. A stopped store outranks a node that
    /// does not know. That the entry concerned nobody counts only if all nodes say so.
    fileprivate var rank: Int {
        switch self {
        case .applied, .refused, .state, .start, .status, .alive, .reloaded, .sequencers,
            .timers, .lease, .leases, .handingOver:
            Self.rankMax
        case .stopped: 2
        case .failed: 1
        case .concernedNobody: 0
        }
    }

    fileprivate static var rankMax: Int { 3 }
}
