import ConfluxVocabulary

/// Hellos of nodes that have heard of a higher epoch than this tenure's.
///
/// Either a newer tenure has begun, and this one is over; or the log was put back to an earlier
/// copy, and the tenure that the node has heard of is lost with its end. Only the log knows: where
/// it confirms this tenure *after* the hello, the welcome says that it did so, and the node goes
/// back to the lower epoch (rules 1 and 2). A sequencer that is superseded gets no confirmation, so
/// it can talk nobody into its past.
struct DoubtTable: Sendable {
    struct Doubt: Sendable {
        var hello: Hello
        var epoch: Epoch
    }

    /// The most of each kind. *At the bound* a hello is left unanswered: it is said again.
    private static let countMax = 1_024

    private var waiting: [ConnectionID: Doubt] = [:]
    private var asked: [ConnectionID: Doubt] = [:]
    /// What the log has confirmed against, by who is to be told.
    private var refuted: [ConnectionID: Epoch] = [:]

    var hasWaiting: Bool { !waiting.isEmpty }
    /// The hellos that are kept.
    var hellos: some Sequence<Hello> {
        [waiting.values, asked.values].joined().lazy.map(\.hello)
    }

    mutating func add(_ hello: Hello, _ epoch: Epoch, from connection: ConnectionID) {
        guard waiting.count < Self.countMax || waiting[connection] != nil else { return }
        waiting[connection] = Doubt(hello: hello, epoch: epoch)
    }

    /// A confirmation begins.
    mutating func begin() {
        asked.merge(waiting) { $1 }
        waiting = [:]
    }

    /// The confirmation has ended well.
    ///
    /// - Returns: The hellos that may be answered, in a stable order.
    mutating func end() -> [(connection: ConnectionID, doubt: Doubt)] {
        defer { asked = [:] }
        if refuted.count + asked.count > Self.countMax { refuted = [:] }
        for (connection, doubt) in asked {
            refuted[connection] = doubt.epoch
            // Its node said hello again while it waited, and has gone on when that one's turn comes.
            waiting[connection] = nil
        }
        return asked.sorted { $0.key.rawValue < $1.key.rawValue }
            .map { (connection: $0.key, doubt: $0.value) }
    }

    /// The epoch that the node at this connection has heard of and that is lost; none mostly.
    mutating func takeRefuted(_ connection: ConnectionID) -> Epoch {
        refuted.removeValue(forKey: connection) ?? .none
    }
}
