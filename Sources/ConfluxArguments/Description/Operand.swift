/// An argument that is recognised by its place: `TARGET`.
///
/// A single dash is an operand (by custom: standard input), and so is everything after `--`.
public struct Operand<Value: Sendable>: ParameterKey {
    /// The description, without the type.
    public let parameter: Parameter

    /// Describes an operand that must be given.
    ///
    /// - Parameters:
    ///   - name: The name of its place, in capitals.
    ///   - parser: Makes the value.
    ///   - summary: A sentence for the help text.
    public init(_ name: String, parse parser: ValueParser<Value>, summary: String) {
        self.init(name, parser, .required, summary) { (texts: [String]) throws(InvalidValue) in
            guard let text = texts.last else { throw InvalidValue("a value is missing") }
            return try parser.parse(text)
        }
    }

    /// Describes an operand whose value is nil when it is not given.
    ///
    /// - Parameters:
    ///   - name: The name of its place, in capitals.
    ///   - parser: Makes the value.
    ///   - summary: A sentence for the help text.
    public init<Wrapped>(
        optional name: String, parse parser: ValueParser<Wrapped>, summary: String
    ) where Value == Wrapped? {
        self.init(name, parser, .optional, summary) {
            (texts: [String]) throws(InvalidValue) -> Wrapped? in
            guard let text = texts.last else { return nil }
            return try parser.parse(text)
        }
    }

    /// Describes all operands from this place on.
    ///
    /// - Parameters:
    ///   - name: The name of one of them, in capitals.
    ///   - atLeastOne: Whether one must be given.
    ///   - parser: Makes one value.
    ///   - summary: A sentence for the help text.
    public init<Element>(
        rest name: String, atLeastOne: Bool = false, parse parser: ValueParser<Element>,
        summary: String
    ) where Value == [Element] {
        self.init(name, parser, atLeastOne ? .atLeastOne : .anyNumber, summary) {
            (texts: [String]) throws(InvalidValue) -> [Element] in
            try texts.map { (text: String) throws(InvalidValue) in try parser.parse(text) }
        }
    }

    private init<One>(
        _ name: String, _ parser: ValueParser<One>, _ presence: Parameter.Presence,
        _ summary: String,
        resolve: @escaping @Sendable ([String]) throws(InvalidValue) -> Value
    ) {
        precondition(!name.isEmpty && !name.hasPrefix("-"), "'\(name)' can't name an operand")
        parameter = Parameter(
            kind: .operand, name: name, valueName: name, presence: presence, summary: summary,
            defaultText: nil, completion: parser.completion
        ) { (texts: [String]) throws(InvalidValue) in Slot(value: try resolve(texts)) }
    }
}
