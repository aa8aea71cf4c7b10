import Conflux
import ConfluxVocabulary
import Foundation

/// The parts of a log's line that are used.
private struct LogLine: Decodable {
    var kind: String?
    var target: String?
    var action: JSONValue?
    var sequence: UInt64?
    /// Nanoseconds since the start of 1970.
    var timestamp: Int64?
    /// The node's incarnation and the number of its action, as in `6:1`.
    var origin: String?
    /// The event, if it is one: the state makes an action of it.
    var event: Name? {
        if case .event(let name, _)? = target.flatMap({ Target(described: $0) }) {
            name
        } else {
            nil
        }
    }
    /// The number of the entry that this one declares to have no effect.
    var skipped: UInt64?
}

extension Work {
    /// Reads the actions of a log, as `conflux log --json` prints it.
    ///
    /// - Parameters:
    ///   - log: The lines.
    ///   - store: The store whose actions to take. Those for all stores of the state are taken, too.
    ///   - snapshot: The state before the first action.
    /// - Throws: ``CheckFailure`` for a line that is not of a log.
    init(log: String, store: String, from snapshot: State.Snapshot?) throws(CheckFailure) {
        self.init(from: snapshot)
        guard let name = StoreName(store) else {
            throw CheckFailure(
                message: "\"\(store)\" is not a store; expected one as in \"stock/north\"")
        }
        var lines: [(number: Int, line: LogLine)] = []
        var skipped: Set<UInt64> = []
        for (index, text) in log.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated() where !text.allSatisfy(\.isWhitespace)
        {
            do {
                let line = try CanonicalCoder().decode(LogLine.self, from: Array(text.utf8))
                if let text = line.target {
                    guard Target(described: text).map({ $0.concerns(name) }) ?? false else {
                        continue
                    }
                }
                if line.kind == "skipped", let number = line.skipped { skipped.insert(number) }
                if line.kind ?? "action" == "action" { lines.append((index + 1, line)) }
            } catch {
                throw CheckFailure(message: "line \(index + 1): \(error)")
            }
        }
        for (number, line) in lines {
            // The entry has no effect in any replica.
            if let sequence = line.sequence, skipped.contains(sequence) { continue }
            guard let json = line.action else {
                throw CheckFailure(message: "line \(number): it has no member `action`")
            }
            do {
                guard let action = try Self.action(json, of: line.event) else { continue }
                try add(
                    action, sequence: line.sequence, timestamp: line.timestamp,
                    origin: try line.origin.map { text throws(CheckFailure) in
                        try RecordedOrigin(text)
                    })
            } catch {
                let reason = (error as? CheckFailure)?.message ?? String(describing: error)
                throw CheckFailure(message: "line \(number): \(reason)")
            }
        }
    }

    /// Decodes a printed action or event: JSON, or base 64 of its bytes in the compact coding if the tool does not know the
    /// state.
    private static func action(
        _ json: JSONValue, of event: Name?
    ) throws(CodingFailure) -> State.Action? {
        if let event {
            let payload = Array(json.description.utf8)[...]
            return try State.eventHandlers?.action(ofEvent: event, payload, as: .json)
        }
        let coder = ActionCoder<State.Action>()
        func read() throws(CodingFailure) -> State.Action {
            try coder.decode(Array(json.description.utf8)[...], as: .json)
        }
        guard case .object(let members) = json, members.count == 1,
            case .string(let text)? = members["compact"], let data = Data(base64Encoded: text)
        else { return try read() }
        do {
            return try coder.decode(Array(data)[...], as: .compact)
        } catch {
            // An action may have a member of this name, too.
            if let action = try? read() { return action }
            throw error
        }
    }
}

/// The origin of an action in a log.
struct RecordedOrigin: Codable {
    private let incarnation: UInt64
    private let counter: UInt64

    /// Reads an origin as `conflux log` prints it.
    ///
    /// - Throws: ``CheckFailure`` if the text is not an origin.
    init(_ text: String) throws(CheckFailure) {
        let numbers = text.split(separator: ":", omittingEmptySubsequences: false)
            .map { UInt64($0) }
        guard numbers.count == 2, let incarnation = numbers[0], let counter = numbers[1] else {
            throw CheckFailure(
                message: """
                    its `origin` is "\(text)"; expected a node's number and that of its action, as in "6:1"
                    """)
        }
        (self.incarnation, self.counter) = (incarnation, counter)
    }

    var origin: Origin {
        Origin(incarnation: Incarnation(incarnation), counter: counter)
    }
}
