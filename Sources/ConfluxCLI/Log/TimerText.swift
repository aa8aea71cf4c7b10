import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// The text of timers, and of the entries that set and end them.
enum TimerText {
    /// What an entry asks; nil if that is hidden from this key, or of a later version.
    static func request(_ payload: Bytes) -> TimerRequest? { try? TimerRequest(payload: payload) }

    /// Whether an entry is about any of the wanted stores.
    static func concerns(_ wanted: Target?, _ payload: Bytes) -> Bool {
        switch request(payload) {
        case .set(let order):
            order.actions.targets.contains { EntryText.concerns(wanted, $0.target) }
        case .cancel(let key): EntryText.concerns(wanted, key.target)
        case nil: wanted == nil
        }
    }

    /// The words of an entry.
    static func words(_ payload: Bytes) -> String {
        switch request(payload) {
        case .set(let order):
            let when =
                switch order.due {
                case .after(let span): "after \(words(span))"
                case .at(let time): "at \(time.iso8601)"
                }
            let key = order.key.map { " \(words($0))" } ?? ""
            let every = order.interval.map { " every \(words($0))" } ?? ""
            let targets = order.actions.targets
            let actions = order.actions.parsedEntries.enumerated().map { place, entry in
                let row = targets[entry.target]
                let text = String(
                    checkedUTF8: EntryText.json(entry.payload, of: row.target.state, row.coding))
                return place == 0 ? text : "\(row.target) \(text)"
            }
            return "timer set: \(targets[0].target)\(key) \(when)\(every)  "
                + actions.joined(separator: "; ")
        case .cancel(let key): return "timer cancelled: \(key.target) \(words(key.name))"
        case nil:
            return payload.isEmpty
                ? "timer set or cancelled: hidden from this key"
                : "timer set or cancelled, as a later version has it"
        }
    }

    /// The JSON of an entry's payload.
    static func json(_ payload: Bytes) -> Bytes {
        guard let request = request(payload) else {
            return EntryText.json(payload, of: nil, .compact)
        }
        let json =
            switch request {
            case .set(let order): JSONObject(["set": JSONObject(fields(order))])
            case .cancel(let key):
                JSONObject([
                    "cancel": JSONObject(["key": key.name, "target": key.target.description])
                ])
            }
        return Array(json.json.description.utf8)[...]
    }

    private static func fields(_ order: TimerOrder) -> JSONFields {
        var fields: JSONFields = [
            "actions": order.actions.parsedEntries.map { entry in
                let row = order.actions.targets[entry.target]
                return JSONObject([
                    "action": value(entry.payload, row), "target": row.target.description,
                ])
            },
            "every": order.interval.map { Int($0.wholeNanoseconds) }, "key": order.key,
        ]
        switch order.due {
        case .after(let span): fields["after"] = Int(span.wholeNanoseconds)
        case .at(let time): fields["at"] = Int(time.rawValue)
        }
        return fields
    }

    private static func value(_ payload: Bytes, _ row: BatchTarget) -> JSONValue {
        let bytes = EntryText.json(payload, of: row.target.state, row.coding)
        do {
            return try JSONValue(json: bytes)
        } catch {
            return .string(error.message)
        }
    }

    /// The fields of a timer in a list.
    static func fields(_ timer: TimerStatus) -> JSONFields {
        [
            "due": Int(timer.due.rawValue),
            "every": timer.interval.map { Int($0.wholeNanoseconds) },
            "key": timer.key, "owner": timer.owner,
            "targets": timer.targets.map(\.description), "timer": timer.number,
        ]
    }

    /// A key. It is any text, so it is quoted.
    static func words(_ key: String) -> String { JSONValue.string(key).description }

    /// A span, as the command line takes it.
    static func words(_ span: Duration) -> String {
        ValueParser<Duration>.duration().describe(span)
    }
}
