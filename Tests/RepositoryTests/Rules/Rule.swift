import Testing

/// Something that must hold for the whole repository, and can be checked by reading it.
struct Rule: Sendable, CustomTestStringConvertible {
    /// The rule as a sentence.
    let name: String
    /// Finds where the rule is broken.
    let check: @Sendable (Tree) -> [Violation]

    var testDescription: String { name }

    static let all: [Rule] = imports + shapes + safety + prose + statements
}

extension Tree {
    /// A violation for each line of code, in these folders, that matches.
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
