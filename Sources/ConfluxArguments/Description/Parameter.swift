/// A typed key: an ``Option``, a ``Flag`` or an ``Operand``.
///
/// The same key describes the parameter in a ``Command`` and reads its value from an
/// ``Invocation``, so that no name and no type is written twice.
public protocol ParameterKey<Value>: Sendable {
    /// What ``Invocation`` gives for this key.
    associatedtype Value: Sendable
    /// The description, without the type.
    var parameter: Parameter { get }
}

/// What a command accepts in one place, without the type of its value.
public struct Parameter: Sendable {
    enum Kind: Sendable {
        case option
        case flag
        case operand
    }

    /// How often a parameter may and must be given.
    enum Presence: Sendable {
        case optional
        case required
        case anyNumber
        case atLeastOne

        var isRepeatable: Bool { self == .anyNumber || self == .atLeastOne }
        var isRequired: Bool { self == .required || self == .atLeastOne }
    }

    let kind: Kind
    /// What the user writes: `--bind`. For an operand, the name of its place: `TARGET`.
    let name: String
    let valueName: String
    let presence: Presence
    let summary: String
    let defaultText: String?
    let completion: Completion
    /// Makes the ``Slot`` of the typed value from the texts that were given, in their order.
    let resolve: @Sendable ([String]) throws(InvalidValue) -> any Sendable

    init<One, Value: Sendable>(
        _ kind: Kind, _ name: String, _ valueName: String?, _ parser: ValueParser<One>,
        _ presence: Presence, _ summary: String, defaultText: String? = nil,
        _ resolve: @escaping @Sendable ([String]) throws(InvalidValue) -> Value
    ) {
        if kind == .operand {
            precondition(!name.isEmpty && !name.hasPrefix("-"), "'\(name)' can't name an operand")
        } else {
            precondition(Self.isOptionName(name), "'\(name)' is not '--' and lower-case words")
        }
        self.kind = kind
        self.name = name
        self.valueName = valueName ?? parser.valueName
        self.presence = presence
        self.summary = summary
        self.defaultText = defaultText
        completion = parser.completion
        self.resolve = { (texts: [String]) throws(InvalidValue) in
            Slot(value: try resolve(texts))
        }
    }

    /// The parameter in a synopsis, without brackets: `--data DIR`.
    var form: String {
        switch kind {
        case .option: "\(name) \(valueName)"
        case .flag, .operand: name
        }
    }

    /// Whether a name is two dashes, then words of lower-case letters and digits, separated by
    /// dashes.
    static func isOptionName(_ name: String) -> Bool {
        guard name.hasPrefix("--"), name.count > 2 else { return false }
        return name.dropFirst(2).split(separator: "-", omittingEmptySubsequences: false).allSatisfy
        { word in
            !word.isEmpty
                && word.allSatisfy { ("a"..."z").contains($0) || ("0"..."9").contains($0) }
        }
    }
}

/// Holds a typed value, which ``Invocation`` looks up by key.
struct Slot<Value: Sendable>: Sendable {
    let value: Value
}
