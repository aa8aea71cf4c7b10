import ConfluxVocabulary

/// Hellos of nodes that have heard of a higher epoch than this tenure's.
///
/// Either a newer tenure has begun, and this one is over; or the log was put back to an earlier
/// copy, and the tenure that the node has heard of is lost with its end. Only the log knows: a hello
/// is answered where the log confirms this tenure *after* it came (rules 1 and 2). A sequencer that is
/// superseded gets no confirmation, so it can talk nobody into its past.
///
/// A connection has one hello here, its last. One that comes again is the same, so that who repeats
/// it does not wait for ever.
struct DoubtTable: Sendable {
    /// The most of each kind. *At the bound* a hello is left unanswered: it is said again.
    private static let countMax = 1_024

    private var waiting: [ConnectionID: Hello] = [:]
    private var asked: [ConnectionID: Hello] = [:]

    var hasWaiting: Bool { !waiting.isEmpty }
    /// The hellos that are kept.
    var hellos: some Sequence<Hello> { [waiting.values, asked.values].joined() }

    mutating func add(_ hello: Hello, from connection: ConnectionID) {
        guard asked[connection] != hello,
            waiting.count < Self.countMax || waiting[connection] != nil
        else { return }
        asked[connection] = nil
        waiting[connection] = hello
    }

    /// The connection has ended: nobody waits there.
    mutating func end(_ connection: ConnectionID) {
        waiting[connection] = nil
        asked[connection] = nil
    }

    /// A confirmation begins.
    mutating func begin() {
        asked.merge(waiting) { $1 }
        waiting = [:]
    }

    /// The confirmation has ended well.
    ///
    /// - Returns: The hellos that may be answered, in a stable order.
    mutating func end() -> [(connection: ConnectionID, hello: Hello)] {
        defer { asked = [:] }
        return asked.sorted { $0.key.rawValue < $1.key.rawValue }
            .map { (connection: $0.key, hello: $0.value) }
    }
}
