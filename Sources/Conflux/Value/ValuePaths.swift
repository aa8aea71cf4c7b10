/// A place in a value, as the names of properties and the keys of dictionaries that lead to it, with dots
/// between them: `info.nest.title`.
///
/// A key that has a dot in it is written with a backslash before that dot, and a backslash as two; the
/// elements of an array are counted from 0. Properties are named as they are encoded.
public struct ValuePath: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The names on the way, from the outermost on.
    public let names: [String]

    /// Reads a path.
    ///
    /// - Parameter text: The names with dots between them; the empty text is the whole value.
    public init(_ text: String) {
        var names: [String] = []
        var name = ""
        var isEscaped = false
        for character in text {
            switch character {
            case "\\" where !isEscaped: isEscaped = true
            case "." where !isEscaped:
                names.append(name)
                name = ""
            default:
                name.append(character)
                isEscaped = false
            }
        }
        self.names = text.isEmpty ? [] : names + [name]
    }

    /// Makes a path of names that may have dots in them.
    ///
    /// - Parameter names: From the outermost on.
    public init(names: [String]) {
        self.names = names
    }

    /// Reads a path.
    public init(stringLiteral text: String) {
        self.init(text)
    }

    /// The path as it is read.
    public var description: String {
        names.map { name in
            name.flatMap { $0 == "." || $0 == "\\" ? ["\\", $0] : [$0] }.map(String.init).joined()
        }.joined(separator: ".")
    }
}

extension Store where State: ValueHolder, State.Value: Encodable {
    /// What becomes of a place in the value, with the old and the new value there.
    ///
    /// ```swift
    /// settings.changes(at: "window.title").observe { change in
    ///     print(change.old ?? .null, change.new ?? .null)
    /// }
    /// ```
    ///
    /// The place may lie in nested structures and in dictionaries. A value is nil where there is none, as
    /// where a dictionary has no such key. Members and keys whose name begins with `_` are internal: a
    /// change of them alone is none, they are left out, and there is nothing at a place in them.
    ///
    /// The value is encoded after each action as long as somebody observes; for properties that are known
    /// when the program is written ``changed(_:)`` and ``changes(of:)`` cost far less. A value that can't
    /// be encoded counts as unchanged.
    ///
    /// - Parameter path: The place; the empty one is the whole value.
    /// - Returns: A signal of changes from the observation on, which doesn't keep the store alive.
    public func changes(at path: ValuePath) -> Signal<Change<JSONValue?>> {
        let isInternal = path.names.contains { $0.hasPrefix("_") }
        let pointer = isInternal ? nil : JSONPointer(tokens: path.names)
        return listening { send in
            let last = Last<EncodedPart>()
            return { state, _ in
                let new = EncodedPart(state._read { $0 }, at: pointer)
                let old = last.value
                if let old, new.isUnknown || old.value == new.value { return }
                last.value = new
                if let old { send(Change(old: old.value, new: new.value)) }
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
