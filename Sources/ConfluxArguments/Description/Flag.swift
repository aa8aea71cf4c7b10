/// An option without a value: `--json`. The flag's value says whether it was given.
///
/// `--json=false` overrides a variable that says true. ``truth(of:)`` lists the accepted words.
public struct Flag: ParameterKey {
    /// Whether the flag was given.
    public typealias Value = Bool
    /// The description, without the type.
    public let parameter: Parameter

    /// Describes a flag.
    ///
    /// - Parameters:
    ///   - name: Two dashes and lower-case words.
    ///   - summary: A sentence for the help text.
    public init(_ name: String, summary: String) {
        let parser = ValueParser<Bool>("", completion: .words(["true", "false"])) {
            (text: String) throws(InvalidValue) in
            guard let truth = Flag.truth(of: text) else {
                throw InvalidValue("'\(text)' is neither true nor false; write true or false")
            }
            return truth
        }
        parameter = Parameter(.flag, name, "", parser, .optional, summary) {
            (texts: [String]) throws(InvalidValue) in try parser.last(of: texts) ?? false
        }
    }

    /// Reads a word: `true`, `yes`, `on`, `1`, or `false`, `no`, `off`, `0`, in upper or lower
    /// case.
    ///
    /// - Returns: nil for any other word.
    public static func truth(of word: String) -> Bool? {
        switch word.lowercased() {
        case "true", "yes", "on", "1": true
        case "false", "no", "off", "0": false
        default: nil
        }
    }
}
