import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// Writes entries of the log for people who watch.
enum EntryWriter {
    /// The most bytes of an action that is written whole. *At the bound* only its beginning is written, as a text.
    static let actionBytesMax = 4 << 10
    private static let beginningBytesMax = 400

    static func concerns(_ wanted: Target?, _ entry: LogEntry) -> Bool {
        guard let wanted else { return true }
        let target: Target? =
            switch entry {
            case .action(_, let row, _): row.target
            case .event(.skipped(_, let target), _): target
            case .event(let event, _):
                (event.fields["store"].flatMap(\.self) as? StoreName).map { .store($0) }
            }
        guard let target else { return false }
        return switch wanted {
        case .store(let store): target.concerns(store)
        default: target == wanted
        }
    }

    /// The event of a batch.
    ///
    /// - Parameters:
    ///   - entries: The entries in JSON.
    ///   - left: How many were left out.
    ///   - first: The number of the first one that it was chosen from.
    ///   - last: The number of the last one.
    /// - Returns: The event of a stream.
    static func event(
        _ entries: [[UInt8]], left: Int, _ first: SequenceNumber, _ last: SequenceNumber
    ) -> [UInt8] {
        var bytes = Array(#"event: entries\#ndata: {"entries":["#.utf8)
        for (index, entry) in entries.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes += entry
        }
        bytes += Array(#"],"from":\#(first),"left":\#(left),"through":\#(last)}"#.utf8)
        return bytes + Array("\n\n".utf8)
    }

    /// An entry as a JSON object.
    static func json(
        _ entry: LogEntry, at sequence: SequenceNumber, in commit: Commit,
        _ stores: [StoreName: any AnyServedStore]
    ) -> [UInt8] {
        var fields: JSONFields = [
            "epoch": commit.epoch, "sequence": sequence, "timestamp": commit.timestamp.iso8601,
        ]
        switch entry {
        case .event(let event, let owner):
            fields.merge(event.fields) { first, _ in first }
            fields["nonce"] = .some(nil)
            fields["kind"] = "\(event.kind)"
            fields["key"] = owner
            return Array(JSONObject(fields).json.description.utf8)
        case .action(let payload, let row, let origin):
            fields["kind"] = "action"
            fields["origin"] = "\(origin)"
            fields["target"] = "\(row.target)"
            var action: [UInt8]?
            if case .store(let name) = row.target, let record = stores[name]?.records[sequence] {
                fields["outcome"] = record.kind == .refused ? "refused" : "applied"
                let (body, reason) = parts(of: record)
                action = body
                fields["reason"] = reason
            }
            if payload.isEmpty { fields["hidden"] = true }
            if action == nil, row.coding == .json, !payload.isEmpty { action = Array(payload) }
            return object(fields, action)
        }
    }

    private static func parts(of record: ServedRecord) -> ([UInt8]?, String?) {
        let body = record.body
        // A body that was discarded meanwhile is empty.
        guard record.kind == .refused, let value = (try? JSONValue(json: body))?.object else {
            return (body.isEmpty ? nil : body, nil)
        }
        return (
            value["action"].map { Array($0.description.utf8) }, value["reason"]?.string
        )
    }

    /// The object with the action, which comes as it is, since it may be large.
    private static func object(_ fields: JSONFields, _ action: [UInt8]?) -> [UInt8] {
        var fields = fields
        guard let action else { return Array(JSONObject(fields).json.description.utf8) }
        // Line breaks between tokens would end the event's line.
        guard action.count <= actionBytesMax, let value = try? JSONValue(json: action) else {
            fields["bytes"] = action.count
            fields["text"] = String(shown: action.prefix(beginningBytesMax))
            return Array(JSONObject(fields).json.description.utf8)
        }
        fields["action"] = value
        return Array(JSONObject(fields).json.description.utf8)
    }
}
