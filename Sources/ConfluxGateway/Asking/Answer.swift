import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// The answer to a request.
enum Answer: Sendable {
    /// A member of an object, already encoded.
    struct Member {
        let key: StaticString
        let json: [UInt8]

        init(_ key: StaticString, _ json: [UInt8]) { (self.key, self.json) = (key, json) }

        init(_ key: StaticString, _ json: String) { self.init(key, Array(json.utf8)) }
    }

    case success([Member])
    case failure(CommandFailure)

    /// One JSON object.
    ///
    /// - Parameter id: The request's id.
    /// - Returns: The object in UTF-8.
    func bytes(id: JSONValue? = nil) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        bytes.append(UInt8(ascii: "{"))
        if let id { Self.add(Member("id", id.description), to: &bytes) }
        switch self {
        case .success(let members):
            for member in members { Self.add(member, to: &bytes) }
        case .failure(let failure):
            Self.add(
                Member("error", JSONObject(Self.members(of: failure)).json.description), to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private static func add(_ member: Member, to bytes: inout [UInt8]) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\""))
        member.key.withUTF8Buffer { bytes += $0 }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
        bytes += member.json
    }

    /// What an answer tells of a failure.
    static func members(of failure: CommandFailure) -> JSONFields {
        [
            "code": failure.code, "message": failure.message,
            "sequence": failure.receipt?.sequence, "version": failure.version,
        ]
    }

    static func state(
        _ state: ServedRecords.State, of store: StoreName, log: LogID?, version: StoreVersion
    ) -> Answer {
        .success(place(of: store, state, log, version) + [Member("state", state.body)])
    }

    static func records(
        _ records: ArraySlice<ServedRecord>, of store: StoreName, log: LogID?,
        after sequence: SequenceNumber, state: ServedRecords.State, version: StoreVersion
    ) -> Answer {
        var messages = MessageWriter(of: store, log: log, after: sequence)
        var list: [UInt8] = [UInt8(ascii: "[")]
        for record in records {
            if list.count > 1 { list.append(UInt8(ascii: ",")) }
            list += messages.message(record)
        }
        list.append(UInt8(ascii: "]"))
        return .success(place(of: store, state, log, version) + [Member("messages", list)])
    }

    private static func place(
        of store: StoreName, _ state: ServedRecords.State, _ log: LogID?, _ version: StoreVersion
    ) -> [Member] {
        [
            Member("epoch", state.place.epoch.map { "\($0.rawValue)" } ?? "null"),
            Member("log", log.map { "\"\($0)\"" } ?? "null"),
            Member("sequence", "\(state.position.rawValue)"), Member("store", "\"\(store)\""),
            Member("version", "\"\(version)\""),
        ]
    }

    /// The version of the store, if the answer has one. As a JSON string, it is an entity tag.
    var tag: String? {
        guard case .success(let members) = self,
            let version = members.first(where: { "\($0.key)" == "version" })
        else { return nil }
        return try? String(utf8: version.json)
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
        let frame = frame(record.kind.rawValue, record.place, actions: record.actionCount)
        return frame.before + record.body + frame.after
    }

    /// What stands before and after the body of a message.
    mutating func frame(
        _ kind: String, _ place: RecordPlace, actions: Int
    ) -> (before: [UInt8], after: [UInt8]) {
        defer { previous = place.sequence }
        let head = heads.head(kind, store, place, log: log, previous: previous, actions: actions)
        return (Array(#"{"head":"#.utf8) + head + #","body":"#.utf8, [UInt8(ascii: "}")])
    }
}
