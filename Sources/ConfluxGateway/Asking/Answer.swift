import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// The answer to a request.
enum Answer: Sendable {
    /// The members of an object, already encoded.
    typealias Members = [(key: String, json: [UInt8])]

    case success(Members)
    case failure(CommandFailure)

    /// One JSON object.
    ///
    /// - Parameter id: The request's id.
    /// - Returns: The object in UTF-8.
    func bytes(id: JSONValue? = nil) -> [UInt8] {
        let own = id.map { [(key: "id", json: Array($0.description.utf8))] } ?? []
        switch self {
        case .success(let members): return Self.bytes(own + members)
        case .failure(let failure):
            let error: JSONObject = Self.members(of: failure)
            return Self.bytes(own + [("error", Array(JSONValue.object(error).description.utf8))])
        }
    }

    /// What an answer tells of a failure.
    static func members(of failure: CommandFailure) -> JSONObject {
        var object: JSONObject = [
            "code": .string(failure.code), "message": .string(failure.message),
        ]
        object["sequence"] = failure.receipt.map { .number($0.sequence) }
        return object
    }

    private static func bytes(_ members: Members) -> [UInt8] {
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for (index, member) in members.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes += "\"\(member.key)\":".utf8
            bytes += member.json
        }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    static func state(_ state: ServedRecords.State, of store: StoreName, log: LogID?) -> Answer {
        .success(place(of: store, state, log) + [("state", state.body)])
    }

    static func records(
        _ records: ArraySlice<ServedRecord>, of store: StoreName, log: LogID?,
        after sequence: SequenceNumber, state: ServedRecords.State
    ) -> Answer {
        var messages = MessageWriter(of: store, log: log, after: sequence)
        var list: [UInt8] = [UInt8(ascii: "[")]
        for record in records {
            if list.count > 1 { list.append(UInt8(ascii: ",")) }
            list += messages.message(record)
        }
        list.append(UInt8(ascii: "]"))
        return .success(place(of: store, state, log) + [("messages", list)])
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

/// Writes messages as objects with a head and a body.
struct MessageWriter {
    private var heads = HeadWriter()
    private let store: StoreName
    private let log: LogID?
    private var previous: SequenceNumber

    /// - Parameters:
    ///   - store: The store.
    ///   - log: The log.
    ///   - previous: The number of the message before the first one.
    init(of store: StoreName, log: LogID?, after previous: SequenceNumber) {
        (self.store, self.log, self.previous) = (store, log, previous)
    }

    mutating func message(_ record: ServedRecord) -> [UInt8] {
        message(record.kind.rawValue, record.place, actions: record.actionCount, record.body)
    }

    mutating func message(
        _ kind: String, _ place: RecordPlace, actions: Int, _ body: [UInt8]
    ) -> [UInt8] {
        defer { previous = place.sequence }
        var bytes = Array(#"{"head":"#.utf8)
        bytes += heads.head(
            kind, store, place, log: log, previous: previous, actions: actions)
        bytes += #","body":"#.utf8
        bytes += body
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }
}
