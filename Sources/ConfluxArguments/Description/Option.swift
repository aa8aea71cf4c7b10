/// An option with a value: `--name VALUE` or `--name=VALUE`.
///
///     let bind = Option("--bind", default: "tcp://127.0.0.1:7400", parse: .text,
///                       summary: "Where nodes connect.")
///     …
///     arguments[bind]    // String
///
/// ``Conventions`` says which options have a letter, and which an environment variable.
public struct Option<Value: Sendable>: ParameterKey {
    /// The description, without the type.
    public let parameter: Parameter

    /// Describes an option with a default.
    ///
    /// - Parameters:
    ///   - name: Two dashes and lower-case words.
    ///   - valueName: The placeholder for the value in help; nil for the parser's own.
    ///   - default: The value when none is given; help shows it.
    ///   - parser: Makes the value.
    ///   - summary: A sentence for the help text.
    public init(
        _ name: String, valueName: String? = nil, default: Value, parse parser: ValueParser<Value>,
        summary: String
    ) {
        parameter = Parameter(
            .option, name, valueName, parser, .optional, summary,
            defaultText: parser.describe(`default`)
        ) { (texts: [String]) throws(InvalidValue) in try parser.last(of: texts) ?? `default` }
    }

    /// Describes an option whose value is nil when none is given.
    ///
    /// - Parameters:
    ///   - name: Two dashes and lower-case words.
    ///   - valueName: The placeholder for the value in help; nil for the parser's own.
    ///   - parser: Makes the value.
    ///   - summary: A sentence for the help text.
    public init<Wrapped>(
        _ name: String, valueName: String? = nil, parse parser: ValueParser<Wrapped>,
        summary: String
    ) where Value == Wrapped? {
        parameter = Parameter(
            .option, name, valueName, parser, .optional, summary, parser.last)
    }

    /// Describes an option that must be given, on the command line or by its variable, if it has one.
    ///
    /// - Parameters:
    ///   - name: Two dashes and lower-case words.
    ///   - valueName: The placeholder for the value in help; nil for the parser's own.
    ///   - parser: Makes the value.
    ///   - summary: A sentence for the help text.
    public init(
        required name: String, valueName: String? = nil, parse parser: ValueParser<Value>,
        summary: String
    ) {
        parameter = Parameter(
            .option, name, valueName, parser, .required, summary, parser.required)
    }

    /// Describes an option that may be given many times; its values keep their order.
    ///
    /// - Parameters:
    ///   - name: Two dashes and lower-case words.
    ///   - valueName: The placeholder for one value in help; nil for the parser's own.
    ///   - atLeastOne: Whether it must be given.
    ///   - parser: Makes one value.
    ///   - summary: A sentence for the help text.
    public init<Element>(
        repeated name: String, valueName: String? = nil, atLeastOne: Bool = false,
        parse parser: ValueParser<Element>, summary: String
    ) where Value == [Element] {
        parameter = Parameter(
            .option, name, valueName, parser, atLeastOne ? .atLeastOne : .anyNumber, summary,
            parser.all)
    }
}
