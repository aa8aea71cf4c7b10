import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// Writes answers: one JSON object each.
enum AnswerBody {
    /// The members of an answer, already encoded.
    typealias Members = [(key: String, json: [UInt8])]

    static func bytes(_ members: Members) -> [UInt8] {
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for (index, member) in members.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes += "\"\(member.key)\":".utf8
            bytes += member.json
        }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    static func error(
        _ code: String, _ message: String, sequence: SequenceNumber? = nil
    ) -> Members {
        var object: JSONObject = ["code": .string(code), "message": .string(message)]
        object["sequence"] = sequence.map { .number($0) }
        return [("error", Array(JSONValue.object(object).description.utf8))]
    }

    static func error(_ failure: CommandFailure) -> Members {
        error(failure.code, failure.message, sequence: failure.receipt?.sequence)
    }

    static func state(_ state: ServedRecords.State, of store: StoreName, log: LogID?) -> Members {
        place(of: store, state, log) + [("state", state.body)]
    }

    static func records(
        _ records: ArraySlice<ServedRecord>, of store: StoreName, log: LogID?,
        after sequence: SequenceNumber, state: ServedRecords.State
    ) -> Members {
        var heads = HeadWriter()
        var previous = sequence
        var list: [UInt8] = [UInt8(ascii: "[")]
        for record in records {
            if list.count > 1 { list.append(UInt8(ascii: ",")) }
            list += bytes([
                (
                    "head",
                    heads.head(
                        record.kind.rawValue, store, record.place, log: log, previous: previous,
                        actions: record.actionCount)
                ), ("body", record.body),
            ])
            previous = record.place.sequence
        }
        list.append(UInt8(ascii: "]"))
        return place(of: store, state, log) + [("messages", list)]
    }

    private static func place(
        of store: StoreName, _ state: ServedRecords.State, _ log: LogID?
    ) -> Members {
        [
            ("epoch", Array((state.place.epoch.map { "\($0.rawValue)" } ?? "null").utf8)),
            ("log", Array((log.map { "\"\($0)\"" } ?? "null").utf8)),
            ("sequence", Array("\(state.position.rawValue)".utf8)),
            ("store", Array("\"\(store)\"".utf8)),
        ]
    }
}
