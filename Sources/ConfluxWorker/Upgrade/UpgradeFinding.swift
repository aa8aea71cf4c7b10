import ConfluxNode
import ConfluxVocabulary

/// What the check of one store found.
struct UpgradeFinding: Sendable {
    let store: StoreName
    /// The schema version of its state.
    let from: Int
    /// The schema version of this program.
    let to: Int
    /// What the migration changes, or why the store could not be opened.
    let result: Result
    /// The number of the last entry in its state; nil if the state is from a file.
    var sequence: SequenceNumber?

    typealias Result = Swift.Result<[JSONChange], CommandFailure>

    var hasFailed: Bool {
        if case .failure = result { true } else { false }
    }

    /// The most changes of a store that are shown to people.
    private static let changesShownMax = 50

    /// The lines for people.
    var text: String {
        let versions = from == to ? "version \(from)" : "version \(from) to \(to)"
        let title = "\(store), \(versions)\(sequence.map { ", at \($0)" } ?? "")"
        switch result {
        case .failure(let failure): return "\(title): failed: \(failure.message)"
        case .success(let changes):
            if changes.isEmpty { return "\(title): nothing changes" }
            var lines = changes.prefix(Self.changesShownMax).map { "  \($0)" }
            if changes.count > lines.count {
                lines.append("  and \(changes.count - lines.count) more: see --json")
            }
            return "\(title):\n" + lines.joined(separator: "\n")
        }
    }

    /// The line for programs.
    var json: JSONValue {
        var fields: JSONFields = ["from": from, "sequence": sequence, "store": store, "to": to]
        switch result {
        case .success(let changes):
            fields["changes"] = changes.map { change in
                JSONObject([
                    "new": change.new, "old": change.old, "path": change.path.description,
                ])
            }
        case .failure(let failure): fields["failure"] = failure
        }
        return JSONObject(fields).json
    }
}

extension Result where Success == [JSONChange], Failure == CommandFailure {
    /// Reads the result from the line of another process; nil if it has none.
    init?(line: JSONValue) throws(CodingFailure) {
        if let failure = line["/failure"]?.object,
            let code = failure["code"]?.string, let message = failure["message"]?.string
        {
            self = .failure(CommandFailure(.failed, code: code, message))
        } else if let rows = line["/changes"]?.array {
            var changes: [JSONChange] = []
            for row in rows {
                guard let path = row["/path"]?.string else { return nil }
                changes.append(
                    JSONChange(path: try JSONPointer(path), old: row["/old"], new: row["/new"]))
            }
            self = .success(changes)
        } else {
            return nil
        }
    }
}
