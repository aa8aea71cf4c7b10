/// Turns the text of one value into a typed value, and says what it expected when it can't.
///
///     let endpoint = ValueParser("ENDPOINT", expecting: "an endpoint, such as tcp://127.0.0.1:7400") {
///         Endpoint($0)
///     }
///
/// A parser is a pure function: the same text has the same outcome, on any thread.
public struct ValueParser<Value: Sendable>: Sendable {
    /// The placeholder for the value in help and usage, such as `DURATION` or `fsync|os`.
    public let valueName: String
    /// What a shell offers when it completes the value.
    public let completion: Completion
    /// The text that parses to a given value; help shows a default with it.
    package let describe: @Sendable (Value) -> String
    private let convert: @Sendable (String) throws(InvalidValue) -> Value

    /// Makes a parser that explains its own errors.
    ///
    /// - Parameters:
    ///   - valueName: The placeholder for the value in help, in capitals: `ENDPOINT`.
    ///   - completion: What a shell offers.
    ///   - describe: The text that parses to a given value.
    ///   - convert: Makes the value, or throws what is wrong with the text.
    public init(
        _ valueName: String, completion: Completion = .anything,
        describe: @escaping @Sendable (Value) -> String = { String(describing: $0) },
        convert: @escaping @Sendable (String) throws(InvalidValue) -> Value
    ) {
        self.valueName = valueName
        self.completion = completion
        self.describe = describe
        self.convert = convert
    }

    /// Makes a parser from a conversion that returns nil on failure.
    ///
    /// - Parameters:
    ///   - valueName: The placeholder for the value in help, in capitals: `ENDPOINT`.
    ///   - expecting: What was expected, with its article and an example; it ends the sentence
    ///     "'x' is not …".
    ///   - completion: What a shell offers.
    ///   - convert: Makes the value; nil if the text is not one.
    public init(
        _ valueName: String, expecting: String, completion: Completion = .anything,
        convert: @escaping @Sendable (String) -> Value?
    ) {
        self.init(valueName, completion: completion) { (text: String) throws(InvalidValue) in
            guard let value = convert(text) else {
                throw InvalidValue("'\(text)' is not \(expecting)")
            }
            return value
        }
    }

    /// Parses one value.
    ///
    /// - Parameter text: The text as it was given, without quotes.
    /// - Returns: The value.
    /// - Throws: ``InvalidValue``, which says what is wrong and what was expected.
    public func parse(_ text: String) throws(InvalidValue) -> Value {
        try convert(text)
    }

    /// Parses the last of some values; nil if there is none.
    func last(of texts: [String]) throws(InvalidValue) -> Value? {
        guard let text = texts.last else { return nil }
        return try convert(text)
    }

    /// Parses the last of some values, one of which must be given.
    func required(of texts: [String]) throws(InvalidValue) -> Value {
        guard let value = try last(of: texts) else { throw InvalidValue("a value is missing") }
        return value
    }

    /// Parses all of some values.
    func all(of texts: [String]) throws(InvalidValue) -> [Value] {
        try texts.map { (text: String) throws(InvalidValue) in try convert(text) }
    }

    /// The same parser, but a shell offers something else.
    public func completing(_ completion: Completion) -> ValueParser<Value> {
        ValueParser(
            valueName, completion: completion, describe: describe, convert: convert)
    }

    /// The same texts, as another type: `.integer(in: 1...UInt64.max).map(SequenceNumber.init)`.
    ///
    /// - Parameters:
    ///   - describe: The text that parses to a given value; help shows a default with it.
    ///   - transform: Makes the other value; it can't fail.
    /// - Returns: A parser that accepts and refuses the same texts.
    public func map<Other>(
        describe: @escaping @Sendable (Other) -> String = { String(describing: $0) },
        _ transform: @escaping @Sendable (Value) -> Other
    ) -> ValueParser<Other> {
        ValueParser<Other>(valueName, completion: completion, describe: describe) {
            (text: String) throws(InvalidValue) in transform(try convert(text))
        }
    }
}

/// Why a text is not a value.
public struct InvalidValue: Error, Equatable, Sendable {
    /// What is wrong and what was expected: the end of a sentence, without a full stop.
    public let reason: String
    /// What was probably meant; nil if nothing is close.
    public let suggestion: String?

    /// Says why a text is not a value.
    ///
    /// - Parameters:
    ///   - reason: What is wrong and what was expected, without a full stop.
    ///   - suggestion: What was probably meant.
    public init(_ reason: String, suggestion: String? = nil) {
        self.reason = reason
        self.suggestion = suggestion
    }
}

/// What a shell offers when it completes a value.
public enum Completion: Hashable, Sendable {
    /// Nothing: the value can be anything.
    case anything
    /// One of these words. None contains a space.
    case words([String])
    /// The name of a file.
    case file
    /// The name of a folder.
    case folder
    /// One of the values of this kind, which only the program itself can find: see ``Completions/asked``. It must find
    /// them soon, or none.
    case asked(String)
}
