import Conflux
import ConfluxVocabulary

/// What is read of a line of a log.
private struct LogLine: Decodable {
    var kind: String?
    var target: String?
    var action: JSONValue?
    var sequence: UInt64?
    /// Nanoseconds since the start of 1970.
    var timestamp: Int64?
    /// The number of the entry that has no effect.
    var skipped: UInt64?
}

extension Work {
    /// The actions of a log, as `conflux log --json` prints it.
    ///
    /// - Parameters:
    ///   - log: The lines.
    ///   - store: The store whose actions are meant. It gets those for all stores of the state, too.
    ///   - snapshot: The state before the first.
    /// - Throws: ``CheckFailure`` for a line that is none of a log's.
    init(log: String, store: String, from snapshot: State.Snapshot?) throws(CheckFailure) {
        self.init(from: snapshot)
        var lines: [(number: Int, line: LogLine)] = []
        var skipped: Set<UInt64> = []
        for (index, text) in log.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated() where !text.allSatisfy(\.isWhitespace)
        {
            do {
                let line = try CanonicalDecoder().decode(LogLine.self, from: Array(text.utf8))
                guard [State.name, store].contains(line.target ?? store) else { continue }
                if line.kind == "skipped", let number = line.skipped { skipped.insert(number) }
                if line.kind ?? "action" == "action" { lines.append((index + 1, line)) }
            } catch {
                throw CheckFailure(message: "line \(index + 1): \(error)")
            }
        }
        for (number, line) in lines {
            // Without an effect everywhere.
            if let sequence = line.sequence, skipped.contains(sequence) { continue }
            guard let json = line.action else {
                throw CheckFailure(message: "line \(number): it has no member `action`")
            }
            do {
                let action = try ActionCoder<State.Action>()
                    .decode(Array(json.description.utf8)[...], as: .json)
                try add(action, sequence: line.sequence, timestamp: line.timestamp)
            } catch {
                let reason = (error as? CheckFailure)?.message ?? String(describing: error)
                throw CheckFailure(message: "line \(number): \(reason)")
            }
        }
    }
}
