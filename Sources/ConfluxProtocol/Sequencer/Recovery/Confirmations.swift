import ConfluxVocabulary

/// Who is to be told of a number: what was asked, by whom.
struct Asker: Sendable, Hashable {
    var connection: ConnectionID
    var request: UInt64
}

/// What waits for the log to confirm this tenure: barriers (rule 29), and hellos of nodes
/// that have heard of a higher epoch than this tenure's.
///
/// A confirmation counts only for what came before it began: one that was under way may have looked
/// before a newer tenure began, and that one may have given receipts before the question was asked.
///
///     question ──▶ waiting ── a confirmation begins ──▶ asked ── it ends ──▶ answered
///
/// One confirmation serves all that wait. A sequencer that is superseded gets none, so it tells nobody
/// anything, and can talk nobody into its past: nodes ask again in the next tenure.
///
/// Where a node has heard of a higher epoch, either a newer tenure has begun, and this one is over; or the
/// log was put back to an earlier copy, and the tenure that the node has heard of is lost with its end.
/// Only the log knows (rule 31). A connection has one hello here, its last. One that comes again is
/// the same, so that who repeats it does not wait for ever.
struct Confirmations: Sendable {
    /// What one confirmation answers.
    private struct Questions: Sendable {
        var barriers: Set<Asker> = []
        var hellos: [ConnectionID: Hello] = [:]
    }

    /// The most hellos of each kind. *At the bound* one is left unanswered: it is said again.
    static let hellosMax = 1_024

    private var waiting = Questions()
    private var asked = Questions()
    /// Whether the log is being asked.
    private(set) var isUnderWay = false

    /// How many barriers there are. *Use*: their bound.
    var barrierCount: Int { waiting.barriers.count + asked.barriers.count }
    /// The hellos that are kept.
    var hellos: some Sequence<Hello> { [waiting.hellos.values, asked.hellos.values].joined() }
    /// Whether another confirmation is needed.
    var isDue: Bool { !waiting.barriers.isEmpty || !waiting.hellos.isEmpty }

    /// Whether the question waits for the next confirmation already.
    func contains(_ barrier: Asker) -> Bool { waiting.barriers.contains(barrier) }

    mutating func add(_ barrier: Asker) { waiting.barriers.insert(barrier) }

    mutating func add(_ hello: Hello, from connection: ConnectionID) {
        guard asked.hellos[connection] != hello,
            waiting.hellos.count < Self.hellosMax || waiting.hellos[connection] != nil
        else { return }
        asked.hellos[connection] = nil
        waiting.hellos[connection] = hello
    }

    /// The connection has ended: a hello of it is not answered any more.
    mutating func forgetHello(from connection: ConnectionID) {
        waiting.hellos[connection] = nil
        asked.hellos[connection] = nil
    }

    mutating func begin() {
        isUnderWay = true
        asked = waiting
        waiting = Questions()
    }

    /// It has ended well.
    ///
    /// - Returns: What it answers, in a stable order.
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
        _ barrier: Barrier, from connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        let question = Asker(connection: connection, request: barrier.request)
        guard
            confirmations.contains(question)
                || confirmations.barrierCount < settings.barriersMax
        else {
            let text = "the sequencer has as many barriers under way as it may; ask again later"
            refuse(.tableFull, text, to: question, into: &effects)
            return
        }
        confirmations.add(question)
        if !confirmations.isUnderWay { confirm(into: &effects) }
    }

    /// Answers a barrier, or a drop.
    func confirm(
        _ sequence: SequenceNumber, to asker: Asker, into effects: inout [SequencerEffect]
    ) {
        let confirmed = Confirmed(request: asker.request, outcome: .confirmed(sequence))
        effects.append(.send(.confirmed(confirmed), to: asker.connection))
    }
}
