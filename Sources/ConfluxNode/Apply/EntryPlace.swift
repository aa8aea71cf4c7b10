import Conflux

/// Where an entry stands, and whose it is.
struct EntryPlace {
    var log: LogID
    var sequence: SequenceNumber
    var timestamp: Timestamp
    var origin: Origin

    /// Goes on to the next entry of the same batch.
    mutating func advance() {
        sequence = sequence.next
        origin = Origin(incarnation: origin.incarnation, counter: origin.counter + 1)
    }
}
