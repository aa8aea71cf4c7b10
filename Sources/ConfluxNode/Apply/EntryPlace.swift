import Conflux

/// An entry's place in the log, and its origin.
struct EntryPlace {
    var log: LogID
    var sequence: SequenceNumber
    var timestamp: Timestamp
    var origin: Origin

    /// Advances to the next entry of the same batch.
    mutating func advance() {
        sequence = sequence.next
        origin = Origin(incarnation: origin.incarnation, counter: origin.counter + 1)
    }
}
