/// An option with a value: `--name VALUE` or `--name=VALUE`.
///
///     let bind = Option("--bind", default: "tcp://127.0.0.1:7400", parse: .text,
///                       summary: "Where nodes connect.")
///     …
///     arguments[bind]    // String
///
/// Every option can also be given by an environment variable, whose name ``Program`` derives. A
/// repeated option takes several values from its variable, separated by commas.
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
        self.init(
            name, valueName, parser, .optional, summary, defaultText: parser.describe(`default`)
        ) { (texts: [String]) throws(InvalidValue) in
            guard let text = texts.last else { return `default` }
            return try parser.parse(text)
        }
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
        self.init(name, valueName, parser, .optional, summary) {
            (texts: [String]) throws(InvalidValue) -> Wrapped? in
            guard let text = texts.last else { return nil }
            return try parser.parse(text)
        }
    }

    /// Describes an option that must be given, on the command line or by its variable.
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
        self.init(name, valueName, parser, .required, summary) {
            (texts: [String]) throws(InvalidValue) in
            guard let text = texts.last else { throw InvalidValue("a value is missing") }
            return try parser.parse(text)
        }
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
        self.init(name, valueName, parser, atLeastOne ? .atLeastOne : .anyNumber, summary) {
            (texts: [String]) throws(InvalidValue) -> [Element] in
            try texts.map { (text: String) throws(InvalidValue) in try parser.parse(text) }
        }
    }

    private init<One>(
        _ name: String, _ valueName: String?, _ parser: ValueParser<One>,
        _ presence: Parameter.Presence, _ summary: String, defaultText: String? = nil,
        resolve: @escaping @Sendable ([String]) throws(InvalidValue) -> Value
    ) {
        precondition(
            Parameter.isOptionName(name), "'\(name)' is not '--' and lower-case words")
        parameter = Parameter(
            kind: .option, name: name, valueName: valueName ?? parser.valueName,
            presence: presence, summary: summary, defaultText: defaultText,
            completion: parser.completion
        ) { (texts: [String]) throws(InvalidValue) in Slot(value: try resolve(texts)) }
    }
}
