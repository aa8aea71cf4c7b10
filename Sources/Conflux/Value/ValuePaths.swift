extension ReadableStore where State.Value: Encodable {
    /// The changes at a place in the value, each with the old and the new value there.
    ///
    /// ```swift
    /// settings.changes(at: "/window/title").observe { change in
    ///     print(change.old ?? .null, change.new ?? .null)
    /// }
    /// ```
    ///
    /// The place may lie in nested structures, in dictionaries and in arrays; properties are named as they are
    /// encoded. A value is nil if there is none, as when a dictionary lacks the key. Members and keys whose
    /// name begins with `_` are internal: they are left out, their changes don't count, and no place in them
    /// has a value.
    ///
    /// The value is encoded after each action while it is observed. For properties known when the
    /// program is written, ``changed(_:)`` and ``changes(of:)`` cost far less. A value that can't be
    /// encoded counts as unchanged.
    ///
    /// - Parameter pointer: The place; `""` is the whole value.
    /// - Returns: A signal that sends changes from the observation on, and doesn't keep the store
    ///   alive.
    public func changes(at pointer: JSONPointer) -> Signal<Change<JSONValue?>> {
        let isInternal = pointer.tokens.contains { $0.hasPrefix("_") }
        let pointer = isInternal ? nil : pointer
        return _store.looking { send in
            var last: EncodedPart?
            return { state in
                let new = EncodedPart(state.held, at: pointer)
                guard let old = last else { return last = new }
                if new.isUnknown || old.value == new.value { return }
                last = new
                send(Change(old: old.value, new: new.value))
            }
        }
    }
}

/// A part of a value, encoded.
private struct EncodedPart: Sendable {
    let value: JSONValue?
    /// Whether it could not be encoded.
    let isUnknown: Bool

    init(_ root: some Encodable, at pointer: JSONPointer?) {
        guard let pointer else {
            value = nil
            isUnknown = false
            return
        }
        do {
            value = try JSONValue(encoding: root)[pointer]?.withoutInternalMembers
            isUnknown = false
        } catch {
            value = nil
            isUnknown = true
        }
    }
}

extension JSONValue {
    /// A value as it is encoded.
    init(encoding value: some Encodable) throws(CodingFailure) {
        try self.init(json: CanonicalCoder().encode(value))
    }

    /// The value without members whose name begins with `_`, however deep.
    var withoutInternalMembers: JSONValue {
        switch self {
        case .array(let elements): .array(elements.map(\.withoutInternalMembers))
        case .object(let members):
            .object(
                JSONObject(
                    sorted: members.lazy.filter { !$0.key.hasPrefix("_") }.map {
                        JSONObject.Member(key: $0.key, value: $0.value.withoutInternalMembers)
                    }))
        default: self
        }
    }
}
