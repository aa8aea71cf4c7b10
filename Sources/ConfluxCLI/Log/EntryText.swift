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
        case (.state(let wanted), _): target.state == wanted
        case (.store(let wanted), _): target.concerns(wanted)
        case (.event(let wanted), _): target == .event(wanted)
        }
    }

    /// Whether an event is among the wanted ones.
    static func concerns(_ wanted: Target?, _ event: LogEvent) -> Bool {
        guard let wanted else { return true }
        switch event {
        case .created(let store, _, _), .dropped(let store, _), .upgraded(let store, _, _, _, _),
            .frozen(let store, _, _), .thawed(let store, _), .digestPoint(let store, _):
            return concerns(wanted, .store(store))
        case .skipped(_, let target): return concerns(wanted, target)
        case .claim, .joined, .visited, .left, .forgotten: return false
        }
    }

    // MARK: Actions

    static func line(
        _ payload: Bytes, for row: BatchTarget, by origin: Origin, _ owner: Name?,
        at sequence: SequenceNumber, in commit: Commit, isJSON: Bool,
        _ look: Appearance = .plain
    ) -> [UInt8] {
        let action = json(payload, of: row.target.state, row.coding)
        guard isJSON else {
            let words = look.hasColours ? JSONLayout.bytes(action, look, columns: nil)[...] : action
            let place = "\(start(sequence, commit, look))\(look.paint("\(row.target)", .cyan))  "
            let by = look.paint("  by \(origin)\(owner.map { " (\($0))" } ?? "")", .faint)
            return Array(place.utf8) + words + Array(by.utf8)
        }
        let head = #"{"action":"#
        let tail = """
            ,"epoch":\(commit.epoch)\(owner.map { #","key":"\#($0)""# } ?? ""),"kind":"action",\
            "origin":"\(origin)","sequence":\(sequence),"target":"\(row.target)","timestamp":\(commit.timestamp)}
            """
        return Array(head.utf8) + action + Array(tail.utf8)
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

    // MARK: Events

    static func line(
        _ event: LogEvent, by owner: Name?, at sequence: SequenceNumber, in commit: Commit,
        isJSON: Bool, _ look: Appearance = .plain
    ) -> [UInt8] {
        guard isJSON else {
            let by = owner.map { "  by the key \($0)" } ?? ""
            return Array("\(start(sequence, commit, look))\(words(event))\(by)".utf8)
        }
        var fields: JSONObject = [
            "epoch": .number(commit.epoch), "kind": .string("\(event.kind)"),
            "sequence": .number(sequence),
            "timestamp": .integer(JSONInteger(commit.timestamp.rawValue)),
        ]
        fields["key"] = owner.map { .string($0.text) }
        switch event {
        case .claim(_, let nonce): fields["nonce"] = .string(nonce.description)
        case .joined(let nonce, let name, let rejoining, let isKeyed):
            fields["nonce"] = .string(nonce.description)
            fields["name"] = name.map { .string($0.text) }
            if rejoining != .none { fields["rejoining"] = .number(rejoining) }
            if isKeyed { fields["keyed"] = true }
        case .visited(let nonce): fields["nonce"] = .string(nonce.description)
        case .left(let incarnation), .forgotten(let incarnation):
            fields["incarnation"] = .number(incarnation)
        case .created(let store, let schemaVersion, let initial):
            fields["store"] = .string(store.description)
            fields["schemaVersion"] = .number(UInt64(schemaVersion))
            fields["initial"] = value(initial)
        case .dropped(let store, let life), .thawed(let store, let life),
            .digestPoint(let store, let life):
            fields["store"] = .string(store.description)
            fields["life"] = .number(life)
        case .upgraded(let store, let life, let schemaVersion, let base, let digest):
            fields["store"] = .string(store.description)
            fields["life"] = .number(life)
            fields["schemaVersion"] = .number(UInt64(schemaVersion))
            fields["base"] = .number(base)
            fields["digest"] = digest.map { .string("\($0)") }
        case .frozen(let store, let life, let reason):
            fields["store"] = .string(store.description)
            fields["life"] = .number(life)
            fields["reason"] = .string("\(reason)")
        case .skipped(let skipped, let target):
            fields["skipped"] = .number(skipped)
            fields["target"] = .string(target.description)
        }
        return Array(JSONValue.object(fields).description.utf8)
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
        }
    }

    /// The entry's number and time.
    private static func start(
        _ sequence: SequenceNumber, _ commit: Commit, _ look: Appearance
    ) -> String {
        "\(sequence)  \(look.paint(commit.timestamp.iso8601, .faint))  "
    }
}
