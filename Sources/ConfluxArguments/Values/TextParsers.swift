extension ValueParser where Value == String {
    /// Any text that is not empty.
    public static var text: ValueParser<String> { nonEmpty("TEXT", completion: .anything) }

    /// The path of a file. The parser does not check the file: whoever opens it reports what is
    /// wrong.
    public static var file: ValueParser<String> { nonEmpty("FILE", completion: .file) }

    /// The path of a folder. The parser does not check the folder: whoever opens it reports what is
    /// wrong.
    public static var folder: ValueParser<String> { nonEmpty("DIR", completion: .folder) }

    private static func nonEmpty(
        _ valueName: String, completion: Completion
    ) -> ValueParser<String> {
        ValueParser(valueName, completion: completion) { (text: String) throws(InvalidValue) in
            guard !text.isEmpty else { throw InvalidValue("the value is empty") }
            return text
        }
    }
}

extension ValueParser where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// One of the words of an enumeration.
    ///
    /// Help shows them as `fsync|os`, and shells offer them. If a word is nearly right, the error
    /// suggests the word that was probably meant.
    public static var choice: ValueParser<Value> {
        let words = Value.allCases.map(\.rawValue)
        return ValueParser(
            words.joined(separator: "|"), completion: .words(words), describe: { $0.rawValue }
        ) { (text: String) throws(InvalidValue) in
            guard let value = Value(rawValue: text) else {
                throw InvalidValue(
                    "'\(text)' is not one of \(words.joined(separator: ", "))",
                    suggestion: nearest(to: text, in: words))
            }
            return value
        }
    }
}
