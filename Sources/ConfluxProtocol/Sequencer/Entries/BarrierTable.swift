import ConfluxVocabulary

/// Who is to be told of a number: what was asked, by whom.
struct Asker: Sendable, Hashable {
    var connection: ConnectionID
    var request: UInt64
}

/// The barriers that wait for the log to confirm this tenure: the one place of rule 29.
///
/// A confirmation counts only for questions that came before it began: one that was under way
/// may have looked before a newer tenure began, and that one may have given receipts before the
/// question was asked.
///
///     question ──▶ waiting ── a confirmation begins ──▶ asked ── it ends ──▶ answered
///
/// One confirmation serves all that wait. When the tenure is superseded nobody is told anything:
/// nodes ask again in the next one.
struct BarrierTable: Sendable {

    /// In the order in which they came.
    private var waiting: [Asker] = []
    private var asked: [Asker] = []
    /// The same. *Use*: a question that comes twice while it waits is one.
    private var isWaiting: Set<Asker> = []

    /// How many there are. *Use*: their bound.
    var count: Int { waiting.count + asked.count }
    var hasWaiting: Bool { !waiting.isEmpty }

    /// Whether the question waits for the next confirmation already.
    func contains(_ question: Asker) -> Bool { isWaiting.contains(question) }

    mutating func add(_ question: Asker) {
        if isWaiting.insert(question).inserted { waiting.append(question) }
    }

    /// A confirmation begins.
    mutating func begin() {
        asked += waiting
        waiting = []
        isWaiting = []
    }

    /// The confirmation has ended well.
    ///
    /// - Returns: The questions that it answers.
    mutating func end() -> [Asker] {
        defer { asked = [] }
        return asked
    }
}

extension SequencerMachine {
    mutating func barrier(
        _ barrier: Barrier, from connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        let question = Asker(connection: connection, request: barrier.request)
        guard barriers.contains(question) || barriers.count < settings.barriersMax else {
            let text = "the sequencer has as many barriers under way as it may; ask again later"
            let confirmed = Confirmed(
                request: barrier.request, outcome: .failed(.tableFull, message: text))
            effects.append(.send(.confirmed(confirmed), to: connection))
            return
        }
        barriers.add(question)
        if !isConfirming { confirm(into: &effects) }
    }

    /// Answers a barrier, or a drop.
    func confirm(
        _ sequence: SequenceNumber, to asker: Asker, into effects: inout [SequencerEffect]
    ) {
        let confirmed = Confirmed(request: asker.request, outcome: .confirmed(sequence))
        effects.append(.send(.confirmed(confirmed), to: asker.connection))
    }
}
