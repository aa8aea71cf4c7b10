import ConfluxVocabulary

/// Who asked, and with which request.
struct Asker: Sendable, Hashable {
    var connection: ConnectionID
    var request: UInt64
}

/// What waits until the log confirms this term: barriers (rule 29), and hellos of nodes that have
/// heard of a higher epoch than this term's.
///
/// A confirmation answers only questions that came before it began. One that was under way may have
/// looked at the log before a newer term began, and that term may have given receipts before
/// the question was asked.
///
///     question ──▶ waiting ── a confirmation begins ──▶ asked ── it ends ──▶ answered
///
/// One confirmation answers everything that waits. A superseded sequencer gets none, so it answers
/// nobody, and can lead nobody back into its past. The nodes ask again in the next term.
///
/// If a node has heard of a higher epoch, there are two cases. Either a newer term has begun, and
/// this one is over. Or the log was put back to an earlier copy, and has lost the term that the
/// node has heard of. Only the log knows which (rule 31). Each connection has one hello here, its
/// last. A hello that is repeated unchanged keeps its place, so that repeating it does not delay
/// the answer for ever.
struct Confirmations: Sendable {
    /// What one confirmation answers.
    private struct Questions: Sendable {
        var barriers: Set<Asker> = []
        /// Whose barriers they are.
        var barrierShares = Shares<Sharer>()
        var hellos: [ConnectionID: Hello] = [:]
        var helloShares = Shares<Sharer>()

        mutating func remove(helloFrom connection: ConnectionID) {
            guard let hello = hellos.removeValue(forKey: connection) else { return }
            helloShares.remove(of: hello.sharer(on: connection))
        }
    }

    /// The most hellos of each kind, which the keys share. *At the bound* a further hello gets no
    /// answer, and the node repeats it.
    static let hellosMax = 1_024

    private var waiting = Questions()
    private var asked = Questions()
    /// Whether a confirmation is under way.
    private(set) var isUnderWay = false

    /// How many barriers there are. *Use*: to bound them.
    var barrierCount: Int { waiting.barriers.count + asked.barriers.count }
    /// The hellos that wait for an answer, and their connections.
    var hellos: some Sequence<(key: ConnectionID, value: Hello)> {
        [waiting.hellos, asked.hellos].joined()
    }
    /// Whether another confirmation is needed.
    var isDue: Bool { !waiting.barriers.isEmpty || !waiting.hellos.isEmpty }

    /// Whether the barrier already waits for the next confirmation.
    func contains(_ barrier: Asker) -> Bool { waiting.barriers.contains(barrier) }

    /// Whether another barrier may wait.
    func hasRoom(for sharer: Sharer, of most: Int) -> Bool {
        ShareRule.admits(
            1, using: waiting.barrierShares.use(of: sharer) + asked.barrierShares.use(of: sharer),
            ofTotal: barrierCount, of: most)
    }

    mutating func add(_ barrier: Asker, of sharer: Sharer) {
        if waiting.barriers.insert(barrier).inserted { waiting.barrierShares.add(of: sharer) }
    }

    mutating func add(_ hello: Hello, from connection: ConnectionID) {
        let sharer = hello.sharer(on: connection)
        guard asked.hellos[connection] != hello,
            waiting.hellos[connection] != nil
                || waiting.helloShares.hasRoom(for: sharer, of: Self.hellosMax)
        else { return }
        forgetHello(from: connection)
        waiting.hellos[connection] = hello
        waiting.helloShares.add(of: sharer)
    }

    /// The connection has ended, so its hello gets no answer any more.
    mutating func forgetHello(from connection: ConnectionID) {
        waiting.remove(helloFrom: connection)
        asked.remove(helloFrom: connection)
    }

    mutating func begin() {
        isUnderWay = true
        asked = waiting
        waiting = Questions()
    }

    /// The log has confirmed the term.
    ///
    /// - Returns: What the confirmation answers, in a stable order.
    mutating func end() -> (barriers: [Asker], hellos: [(key: ConnectionID, value: Hello)]) {
        isUnderWay = false
        defer { asked = Questions() }
        return (
            asked.barriers.sorted {
                ($0.connection.rawValue, $0.request) < ($1.connection.rawValue, $1.request)
            },
            asked.hellos.sorted { $0.key.rawValue < $1.key.rawValue }
        )
    }
}

extension SequencerMachine {
    mutating func barrier(
        _ barrier: Barrier, from connection: ConnectionID, as principal: Principal,
        into effects: inout [SequencerEffect]
    ) {
        let question = Asker(connection: connection, request: barrier.request)
        let sharer = principal.sharer(on: connection)
        guard
            confirmations.contains(question)
                || confirmations.hasRoom(for: sharer, of: settings.barriersMax)
        else {
            let text = "as many barriers as one client may have at once wait; ask again later"
            refuse(.tableFull, text, to: question, into: &effects)
            return
        }
        confirmations.add(question, of: sharer)
        if !confirmations.isUnderWay { confirm(into: &effects) }
    }

    /// Answers a barrier, a drop, a freeze or a skip.
    func confirm(
        _ sequence: SequenceNumber, to asker: Asker, into effects: inout [SequencerEffect]
    ) {
        let confirmed = Confirmed(request: asker.request, outcome: .confirmed(sequence))
        effects.append(.send(.confirmed(confirmed), to: asker.connection))
    }
}
