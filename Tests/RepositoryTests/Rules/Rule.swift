import Testing

/// A rule for the whole repository that can be checked by reading it.
struct Rule: Sendable, CustomTestStringConvertible {
    /// The rule as a sentence.
    let name: String
    /// Finds the places that break the rule.
    let check: @Sendable (Tree) -> [Violation]

    var testDescription: String { name }

    static let all: [Rule] = imports + manifest + shapes + safety + prose + statements + readers
}

extension Tree {
    /// A violation for each matching line of code in these folders.
    func lines(
        in folders: String..., matching isWrong: (String) -> Bool, message: String
    ) -> [Violation] {
        folders.flatMap { folder in
            swift(in: folder).flatMap { path, source in
                source.code.enumerated().filter { isWrong($0.element) }.map {
                    Violation(path: path, line: $0.offset + 1, message: message)
                }
            }
        }
    }
}

extension String {
    /// The identifiers and keywords of a line of code, in order.
    var words: [String] {
        split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map(String.init)
    }

    var isBlank: Bool { allSatisfy(\.isWhitespace) }
}
