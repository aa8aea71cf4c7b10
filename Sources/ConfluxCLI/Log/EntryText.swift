import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Foundation

/// The text of entries, for people or as JSON.
enum EntryText {
    // MARK: What is wanted

    /// Whether an action for `target` is among the wanted ones.
    static func concerns(_ wanted: Target?, _ target: Target) -> Bool {
        switch (wanted, target) {
        case (nil, _): true
        case (.state(let wanted), _): target.states.contains(wanted)
        case (.store(let wanted), _): target.concerns(wanted)
        case (.event, _): target == wanted
        }
    }

    /// Whether an entry is among the wanted ones.
    static func concerns(_ wanted: Target?, _ entry: LogEntry) -> Bool {
        switch entry {
        case .action(let payload, let row, _) where row.target == .timers:
            return TimerText.concerns(wanted, payload)
        case .action(_, let row, _): return concerns(wanted, row.target)
        case .event(let event, _):
            guard wanted != nil else { return true }
            if case .skipped(_, let target) = event { return concerns(wanted, target) }
            if case .handles(let state, _) = event { return concerns(wanted, .state(state)) }
            let store = event.fields["store"].flatMap(\.self) as? StoreName
            return store.map { concerns(wanted, .store($0)) } ?? false
        }
    }

    /// The line of an entry.
    ///
    /// - Parameters:
    ///   - entry: The entry.
    ///   - owner: The key that caused it.
    ///   - sequence: Its number.
    ///   - commit: The commit that has it.
    ///   - isJSON: Whether the line is JSON.
    ///   - look: How a terminal shows it.
    /// - Returns: The line.
    static func line(
        _ entry: LogEntry, by owner: Name?, at sequence: SequenceNumber, in commit: Commit,
        isJSON: Bool, _ look: Appearance
    ) -> [UInt8] {
        let start = "\(sequence)  \(look.paint(commit.timestamp.iso8601, .faint))  "
        switch (entry, isJSON) {
        case (.event(let event, _), false):
            let by = owner.map { "  by the key \($0)" } ?? ""
            return Array("\(start)\(words(event))\(by)".utf8)
        case (.event(let event, _), true):
            let place: JSONFields = [
                "epoch": commit.epoch, "key": owner, "kind": "\(event.kind)",
                "sequence": sequence, "timestamp": Int(commit.timestamp.rawValue),
            ]
            let all = JSONObject(fields(event).merging(place) { $1 })
            return Array(all.json.description.utf8)
        case (.action(let payload, let row, let origin), false) where row.target == .timers:
            return Array(
                "\(start)\(TimerText.words(payload))\(look.paint(words(origin, owner), .faint))"
                    .utf8)
        case (.action(let payload, let row, let origin), false):
            if let request = LeaseText.request(payload, row.target) {
                let by = "  by \(origin)\(owner.map { " (\($0))" } ?? "")"
                return Array("\(start)\(LeaseText.words(request))\(look.paint(by, .faint))".utf8)
            }
            let action = json(payload, of: row.target.state, row.coding)
            let shown = look.hasColours ? JSONLayout.bytes(action, look, columns: nil)[...] : action
            let place = start + look.paint("\(row.target)", .cyan) + "  "
            let by = look.paint(words(origin, owner), .faint)
            return Array(place.utf8) + shown + Array(by.utf8)
        case (.action(let payload, let row, let origin), true):
            let timer = origin.incarnation == .none ? #","timer":\#(origin.counter)"# : ""
            let tail = """
                ,"epoch":\(commit.epoch)\(owner.map { #","key":"\#($0)""# } ?? ""),"kind":"action",\
                "origin":"\(origin)","sequence":\(sequence),"target":"\(row.target)"\(timer),"timestamp":\(commit.timestamp)}
                """
            let action =
                row.target == .timers
                ? TimerText.json(payload)
                : LeaseText.request(payload, row.target).map(LeaseText.json)
                    ?? json(payload, of: row.target.state, row.coding)
            return Array(#"{"action":"#.utf8) + action + Array(tail.utf8)
        }
    }

    /// Who dispatched an action, or which timer did.
    private static func words(_ origin: Origin, _ owner: Name?) -> String {
        origin.incarnation == .none
            ? "  by timer \(origin.counter)" : "  by \(origin)\(owner.map { " (\($0))" } ?? "")"
    }

    /// A payload as JSON on one line. If it can't be converted, it is given as base64.
    static func json(_ payload: Bytes, of state: Name?, _ coding: PayloadCoding) -> Bytes {
        // An encoded action is never empty. An empty payload means that this key may not observe
        // it.
        guard !payload.isEmpty else { return Array(#"{"hidden":true}"#.utf8)[...] }
        do throws(CodingFailure) {
            switch coding {
            case .json:
                let value = try JSONValue(json: payload)
                // JSON allows line breaks between tokens, but this must be one line.
                guard payload.contains(where: { $0 == 0x0A || $0 == 0x0D }) else { return payload }
                return try value.canonicalBytes()[...]
            case .compact:
                guard let state, let actions = BuiltinStates.actions(of: state) else {
                    return bytes(payload, "compact")
                }
                return try actions.json(payload, coding)[...]
            }
        } catch {
            return bytes(payload, coding == .json ? "invalid" : "compact")
        }
    }

    private static func bytes(_ payload: Bytes, _ key: String) -> Bytes {
        Array(#"{"\#(key)":"\#(Data(payload).base64EncodedString())"}"#.utf8)[...]
    }

    // MARK: The log's own events

    private static func fields(_ event: LogEvent) -> JSONFields {
        guard case .created(_, _, let initial) = event else { return event.fields }
        return event.fields.merging(["initial": value(initial)]) { $1 }
    }

    private static func value(_ state: EncodedState) -> JSONValue {
        let bytes = json(state.bytes, of: nil, state.coding)
        do {
            return try JSONValue(json: bytes)
        } catch {
            return .string(error.message)
        }
    }

    private static func words(_ event: LogEvent) -> String {
        switch event {
        case .claim(let epoch, _): "claim: epoch \(epoch) began"
        case .joined(_, let name, let rejoining, let isKeyed):
            rejoining == .none
                ? "joined: \(name?.text ?? (isKeyed ? "a process with a key" : "a node without a name"))"
                : "rejoined: node \(rejoining)"
        case .visited: "visited: a former program began the session of one dispatch"
        case .left(let incarnation): "left: node \(incarnation)"
        case .forgotten(let incarnation): "forgotten: node \(incarnation)"
        case .created(let store, _, let initial):
            "created: \(store) as "
                + String(checkedUTF8: json(initial.bytes, of: nil, initial.coding))
        case .dropped(let store, let life): "dropped: \(store) of \(life)"
        case .upgraded(let store, _, let schemaVersion, let base, _):
            "upgraded: \(store) to schema version \(schemaVersion), from its state at \(base)"
        case .frozen(let store, _, let reason): "frozen: \(store) (\(reason))"
        case .thawed(let store, _): "thawed: \(store)"
        case .digestPoint(let store, _): "digest point: \(store)"
        case .skipped(let skipped, let target): "skipped: entry \(skipped) for \(target)"
        case .handles(let state, let events):
            "handles: \(state)/* the events \(events.map(\.text).joined(separator: ", "))"
        case .forked(let log): "forked: the entries before this term are those of log \(log)"
        }
    }
}
