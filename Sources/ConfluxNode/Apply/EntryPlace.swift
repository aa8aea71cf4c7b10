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

/// Why a skipped entry had no effect (rule 23).
struct EntrySkipped: Error, CustomStringConvertible {
    var description: String { "the entry was skipped" }
}

/// Why an entry had no effect in one store.
enum EntryFailure: Sendable {
    /// The state's check refused it, or its payload is none of the state's actions.
    case refused(any Error)
    /// The store stopped at an earlier entry.
    case stopped(String)

    func error(_ receipt: Receipt) -> DispatchError {
        switch self {
        case .refused(let reason): .refused(reason, receipt: receipt)
        case .stopped(let message):
            DispatchError(code: .storeStopped, message: message, receipt: receipt)
        }
    }

    var message: String {
        switch self {
        case .refused(let reason): "\(reason)"
        case .stopped(let message): message
        }
    }
}
