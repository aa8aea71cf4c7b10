import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// An entry of the log.
package enum LogEntry {
    case action(Bytes, BatchTarget, Origin)
    case event(LogEvent, by: Name?)
}

extension Commit {
    /// Passes the entries with their numbers, in order.
    ///
    /// - Parameter body: Gets each number and its entry.
    package func forEachEntry(_ body: (SequenceNumber, LogEntry) -> Void) {
        var sequence = first
        for block in blocks {
            switch block {
            case .event(let event, let owner):
                body(sequence, .event(event, by: owner))
                sequence = sequence.next
            case .batch(let incarnation, let batch):
                var counter = batch.firstCounter
                for entry in batch.parsedEntries {
                    let origin = Origin(incarnation: incarnation, counter: counter)
                    body(sequence, .action(entry.payload, batch.targets[entry.target], origin))
                    counter += 1
                    sequence = sequence.next
                }
            }
        }
    }
}

extension LogEvent {
    /// The members of its JSON, without the initial state of a store.
    package var fields: JSONFields {
        switch self {
        case .claim(_, let nonce), .visited(let nonce): ["nonce": nonce]
        case .joined(let nonce, let name, let rejoining, let isKeyed):
            [
                "keyed": isKeyed ? true : nil, "name": name, "nonce": nonce,
                "rejoining": rejoining == .none ? nil : rejoining,
            ]
        case .left(let incarnation), .forgotten(let incarnation): ["incarnation": incarnation]
        case .created(let store, let schemaVersion, _):
            ["schemaVersion": schemaVersion, "store": store]
        case .dropped(let store, let life), .thawed(let store, let life),
            .digestPoint(let store, let life):
            ["life": life, "store": store]
        case .upgraded(let store, let life, let schemaVersion, let base, let digest):
            [
                "base": base, "digest": digest.map { "\($0)" }, "life": life,
                "schemaVersion": schemaVersion, "store": store,
            ]
        case .frozen(let store, let life, let reason):
            ["life": life, "reason": "\(reason)", "store": store]
        case .skipped(let skipped, let target): ["skipped": skipped, "target": "\(target)"]
        case .handles(let state, let events):
            ["events": events.map(\.text).joined(separator: " "), "state": state]
        case .forked(let log): ["from": log]
        }
    }
}
