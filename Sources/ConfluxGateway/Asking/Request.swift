import Conflux
import ConfluxVocabulary

/// What somebody asks of a gateway, in one JSON object.
///
/// | request | answer |
/// |---|---|
/// | `{"get":STORE}` | the state, with everything that was applied before |
/// | `{"get":STORE,"atLeast":N}` | the same, once entry N is applied |
/// | `{"get":STORE,"since":N}` | the changes after entry N, or the state if that is too long ago |
/// | `{"get":STORE,"since":N,"as":"actions"}` | the actions after entry N, or the state |
/// | `{"store":STORE,"dispatch":ACTION}` | a receipt, once the action is applied |
/// | `{"store":STORE,"dispatch":ACTION,"key":KEY}` | the same; with one key, an action is applied once |
/// | `{"store":STORE,"dispatch":ACTION,"ifUnchangedSince":VERSION}` | the same; only if the store has not changed |
/// | `{"stores":true}` | the stores, with their newest numbers |
/// | `{"actions":STORE}` | the shapes of the store's actions |
///
/// Each may have a `timeout` in milliseconds, and an `id`, which comes back in the answer.
struct Request {
    enum Verb {
        /// The state; with `mayWait`, also once an entry is applied that the log does not have yet.
        case get(StoreName, atLeast: SequenceNumber?, mayWait: Bool)
        case since(StoreName, SequenceNumber, isActions: Bool)
        /// The action is canonical JSON.
        case dispatch(StoreName, [UInt8], key: String?, ifUnchangedSince: StoreVersion?)
        case stores
        case actions(StoreName)
    }

    let verb: Verb
    let timeout: Duration

    init(_ verb: Verb, timeout: Duration) { (self.verb, self.timeout) = (verb, timeout) }

    /// The key of the action in a dispatch.
    static let actionKey = "dispatch"

    /// Reads a request.
    ///
    /// - Parameters:
    ///   - object: The request, without the action that it dispatches.
    ///   - action: The action in canonical JSON; nil if there is none.
    /// - Throws: What is wrong with it, and what to do.
    init(_ object: JSONObject, dispatching action: [UInt8]?) throws(RequestFault) {
        var reader = RequestReader(object)
        let milliseconds = try reader.number("timeout").map { Int64(clamping: $0) }
        let timeout = milliseconds.map { Duration.milliseconds($0) } ?? GatewayBounds.timeout
        guard timeout > .zero, timeout <= GatewayBounds.timeoutMax else {
            throw RequestFault(
                "\"timeout\" is a number of milliseconds from 1 to "
                    + "\(GatewayBounds.timeoutMax.components.seconds * 1_000)")
        }
        self.timeout = timeout
        _ = reader.take("id")
        if let action {
            guard let store = try reader.store("store") else {
                throw RequestFault(#"a dispatch needs its "store""#)
            }
            let key = try reader.text("key")
            guard key.map({ (1...Self.keyBytesMax).contains($0.utf8.count) }) ?? true else {
                throw RequestFault("\"key\" has 1 to \(Self.keyBytesMax) bytes")
            }
            verb = .dispatch(
                store, action, key: key,
                ifUnchangedSince: try reader.version("ifUnchangedSince"))
        } else if let store = try reader.store("get") {
            if let since = try reader.number("since") {
                let form = try reader.text("as") ?? "changes"
                guard ["changes", "actions"].contains(form) else {
                    throw RequestFault(#""as" is "changes" or "actions""#)
                }
                verb = .since(store, SequenceNumber(since), isActions: form == "actions")
            } else {
                verb = .get(
                    store, atLeast: try reader.number("atLeast").map { SequenceNumber($0) },
                    mayWait: true)
            }
        } else if let store = try reader.store("actions") {
            verb = .actions(store)
        } else if let value = reader.take("stores") {
            guard value == .bool(true) else { throw RequestFault(#""stores" is true"#) }
            verb = .stores
        } else {
            throw RequestFault(
                #"a request has one of "get", "dispatch", "stores", "actions"; for example {"stores":true}"#
            )
        }
        try reader.finish()
    }

    /// The most bytes of an idempotency key. The name of the asker's key is added to it.
    static let keyBytesMax = 128
}

/// What is wrong with a request.
struct RequestFault: Error {
    let message: String

    init(_ message: String) { self.message = message }
}

/// Takes the members of a request one by one.
private struct RequestReader {
    private let object: JSONObject
    private var taken: [String] = []

    init(_ object: JSONObject) { self.object = object }

    mutating func take(_ key: String) -> JSONValue? {
        guard let value = object[key] else { return nil }
        taken.append(key)
        return value
    }

    mutating func text(_ key: String) throws(RequestFault) -> String? {
        guard let value = take(key) else { return nil }
        guard let text = value.string else { throw RequestFault("\"\(key)\" is a string") }
        return text
    }

    mutating func number(_ key: String) throws(RequestFault) -> UInt64? {
        guard let value = take(key) else { return nil }
        guard let number = value.integer?.converted(to: UInt64.self) else {
            throw RequestFault("\"\(key)\" is a whole number from 0 on")
        }
        return number
    }

    /// Reads a version, or a number as one.
    mutating func version(_ key: String) throws(RequestFault) -> StoreVersion? {
        guard let value = take(key) else { return nil }
        let text = value.string ?? value.integer?.converted(to: UInt64.self).map { "\($0)" }
        guard let version = text.flatMap({ StoreVersion($0) }) else {
            throw RequestFault(#""\#(key)" is a version from an answer, or the number of an entry"#)
        }
        return version
    }

    mutating func store(_ key: String) throws(RequestFault) -> StoreName? {
        guard let text = try text(key) else { return nil }
        guard let store = StoreName(text) else {
            throw RequestFault("\"\(key)\" is a store: state or state/instance")
        }
        return store
    }

    /// Refuses what nobody has taken: nobody could know what it was meant to be.
    func finish() throws(RequestFault) {
        guard taken.count < object.count,
            let member = object.first(where: { !taken.contains($0.key) })
        else { return }
        throw RequestFault("nothing in this request has a \"\(member.key)\"")
    }
}
