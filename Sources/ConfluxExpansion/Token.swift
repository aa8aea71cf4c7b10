/// A word, a sign or a literal of Swift source.
struct Token {
    let text: String
    /// Whether a line begins between the token before it and this one.
    let beginsLine: Bool

    /// Divides source into tokens, and leaves out comments.
    static func all(in source: String) -> [Token] {
        var lexer = Lexer(source)
        var tokens: [Token] = []
        while let token = lexer.next() { tokens.append(token) }
        return tokens
    }

    /// A name without the backticks that make a keyword a name.
    var name: String { text.filter { $0 != "`" } }

    /// Whether this is a word, such as a name or a keyword.
    var isWord: Bool { text.unicodeScalars.first.map { $0 == "`" || $0.isOfWord } == true }

    /// How a token changes the depth of brackets.
    var depthChange: Int {
        switch text {
        case "(", "[", "{": 1
        case ")", "]", "}": -1
        default: 0
        }
    }
}

extension Unicode.Scalar {
    fileprivate var isOfWord: Bool {
        self == "_" || self == "$" || properties.isAlphabetic || properties.numericType != nil
    }
}

private struct Lexer {
    private let scalars: [Unicode.Scalar]
    private var position = 0

    init(_ source: String) { scalars = Array(source.unicodeScalars) }

    private var first: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

    private func isNext(_ text: String, at offset: Int = 0) -> Bool {
        scalars[min(position + offset, scalars.count)...].starts(with: text.unicodeScalars)
    }

    private mutating func skip(while isSkipped: (Unicode.Scalar) -> Bool) {
        while let first, isSkipped(first) { position += 1 }
    }

    mutating func next() -> Token? {
        let beginsLine = skipBlanks()
        guard let first else { return nil }
        let start = position
        let marks = scalars[start...].prefix { $0 == "#" }.count
        if isNext("\"", at: marks) {
            skipText(marks)
        } else if first == "`" {
            position += 1
            skip { $0 != "`" }
            position += 1
        } else if first.isOfWord {
            skip(while: \.isOfWord)
        } else {
            position += 1
        }
        position = min(position, scalars.count)
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars[start..<position])
        return Token(text: String(text), beginsLine: beginsLine)
    }

    /// Skips blanks and comments, and says whether a line ended there.
    private mutating func skipBlanks() -> Bool {
        let start = position
        while let first {
            if first.properties.isWhitespace {
                position += 1
            } else if isNext("//") {
                skip { $0 != "\n" }
            } else if isNext("/*") {
                skipComment()
            } else {
                break
            }
        }
        return scalars[start..<position].contains { $0 == "\n" || $0 == "\r" }
    }

    /// Skips a comment, which may contain others.
    private mutating func skipComment() {
        var depth = 0
        repeat {
            if isNext("/*") {
                depth += 1
                position += 2
            } else if isNext("*/") {
                depth -= 1
                position += 2
            } else {
                position += 1
            }
        } while depth > 0 && first != nil
    }

    /// Skips a text with so many number signs before it, whatever its form.
    private mutating func skipText(_ marks: Int) {
        let signs = String(repeating: "#", count: marks)
        position += marks
        let quotes = isNext("\"\"\"") ? "\"\"\"" : "\""
        position += quotes.count
        while first != nil, !isNext(quotes + signs) {
            if isNext("\\" + signs + "(") {
                position += 1 + marks
                skipInterpolation()
            } else {
                position += isNext("\\" + signs) ? 2 + marks : 1
            }
        }
        position += quotes.count + marks
    }

    /// Skips an expression in brackets, in which there may be texts.
    private mutating func skipInterpolation() {
        var depth = 0
        repeat {
            guard let token = next() else { return }
            if token.text == "(" { depth += 1 }
            if token.text == ")" { depth -= 1 }
        } while depth > 0
    }
}
