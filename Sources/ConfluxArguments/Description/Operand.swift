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
        parameter = Parameter(.operand, name, name, parser, .required, summary, parser.required)
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
        parameter = Parameter(.operand, name, name, parser, .optional, summary, parser.last)
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
        parameter = Parameter(
            .operand, name, name, parser, atLeastOne ? .atLeastOne : .anyNumber, summary,
            parser.all)
    }
}
