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
            "every": order.interval.map(\.wholeNanoseconds), "key": order.key,
        ]
        switch order.due {
        case .after(let span): fields["after"] = span.wholeNanoseconds
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
            "due": Int(timer.due.rawValue), "every": timer.interval.map(\.wholeNanoseconds),
            "key": timer.key, "owner": timer.owner,
            "targets": timer.targets.map(\.description), "timer": timer.number,
        ]
    }

    /// A key. It is any text, so it is quoted.
    static func words(_ key: String) -> String { JSONValue.string(key).description }

    /// A span, in the largest unit of which it is a whole number.
    static func words(_ span: Duration) -> String {
        let count = span.wholeNanoseconds
        let units = [
            (86_400_000_000_000, "d"), (3_600_000_000_000, "h"), (60_000_000_000, "m"),
            (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"),
        ]
        guard count != 0, let (size, unit) = units.first(where: { count % $0.0 == 0 }) else {
            return "0s"
        }
        return "\(count / size)\(unit)"
    }
}

extension Duration {
    /// The nearest number of nanoseconds that fits.
    fileprivate var wholeNanoseconds: Int {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflowsToo) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflow || overflowsToo ? (seconds < 0 ? .min : .max) : Int(sum)
    }
}
