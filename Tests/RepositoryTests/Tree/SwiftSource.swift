/// A Swift file, divided into code and comments, so that a rule about code does not apply to prose,
/// and the other way round.
///
/// Both have all lines of the file. In `code`, there are blanks instead of comments, the texts of string
/// literals, and raw identifiers (between backticks), but the code in `\(…)` stays. In `comments`, there are
/// blanks instead of everything but comments. Regex literals are read as code.
struct SwiftSource {
    /// A string literal, without its quotation marks.
    struct Literal {
        /// The literal's bytes in the file, including its quotation marks.
        let place: Range<Int>
        /// The text between the quotation marks, as it is written.
        let text: String
        let isLong: Bool
    }

    let code: [String]
    let comments: [String]
    /// In the order in which they begin. A literal in another one's interpolation counts, too.
    let literals: [Literal]

    init(_ text: String) {
        var scanner = Scanner(Array(text.utf8))
        scanner.scan()
        code = Self.lines(scanner.code)
        comments = Self.lines(scanner.comments)
        literals = scanner.literals.sorted { $0.place.lowerBound < $1.place.lowerBound }
    }

    private static func lines(_ bytes: [UInt8]) -> [String] {
        bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Reads a file byte by byte. Each byte goes to one side, and a blank to the other one.
private struct Scanner {
    private let text: [UInt8]
    private var position = 0
    private(set) var code: [UInt8] = []
    private(set) var comments: [UInt8] = []
    private(set) var literals: [SwiftSource.Literal] = []

    private enum Side { case code, comment, neither }

    private static let newline = UInt8(ascii: "\n")
    private static let blank = UInt8(ascii: " ")
    private static let quote = UInt8(ascii: "\"")
    private static let hash = UInt8(ascii: "#")

    init(_ text: [UInt8]) {
        self.text = text
        code.reserveCapacity(text.count)
        comments.reserveCapacity(text.count)
    }

    mutating func scan() {
        scanCode(untilParenthesis: false)
    }

    private mutating func take(_ side: Side, _ count: Int = 1) {
        for _ in 0..<count where position < text.count {
            let byte = text[position]
            let kept = byte == Self.newline
            code.append(kept || side == .code ? byte : Self.blank)
            comments.append(kept || side == .comment ? byte : Self.blank)
            position += 1
        }
    }

    private func sees(_ word: String) -> Bool {
        text[position...].starts(with: word.utf8)
    }

    /// Reads code up to the end, or up to the parenthesis that ends an interpolation.
    private mutating func scanCode(untilParenthesis: Bool) {
        var depth = 0
        while position < text.count {
            switch text[position] {
            case UInt8(ascii: "/") where sees("//"): scanLineComment()
            case UInt8(ascii: "/") where sees("/*"): scanBlockComment()
            case Self.quote, Self.hash: scanString()
            case UInt8(ascii: "`"): scanRawIdentifier()
            case UInt8(ascii: "("):
                depth += 1
                take(.code)
            case UInt8(ascii: ")"):
                if untilParenthesis, depth == 0 { return }
                depth -= 1
                take(.code)
            default: take(.code)
            }
        }
    }

    private mutating func scanLineComment() {
        while position < text.count, text[position] != Self.newline { take(.comment) }
    }

    private mutating func scanBlockComment() {
        var depth = 0
        repeat {
            if sees("/*") {
                depth += 1
                take(.comment, 2)
            } else if sees("*/") {
                depth -= 1
                take(.comment, 2)
            } else {
                take(.comment)
            }
        } while depth > 0 && position < text.count
    }

    private mutating func scanRawIdentifier() {
        take(.neither)
        while position < text.count, text[position] != UInt8(ascii: "`"),
            text[position] != Self.newline
        {
            take(.neither)
        }
        if position < text.count, text[position] != Self.newline { take(.neither) }
    }

    /// Reads a literal with any number of `#`, and one or three quotation marks. A lone `#` is code.
    private mutating func scanString() {
        let hashes = text[position...].prefix { $0 == Self.hash }.count
        guard position + hashes < text.count, text[position + hashes] == Self.quote else {
            return take(.code, max(hashes, 1))
        }
        let tail = String(repeating: "#", count: hashes)
        let start = position
        take(.neither, hashes)
        let isLong = sees("\"\"\"")
        let mark = isLong ? "\"\"\"" : "\""
        take(.neither, mark.utf8.count)
        let textStart = position
        while position < text.count, isLong || text[position] != Self.newline {
            if sees(mark + tail) {
                let written = String(decoding: text[textStart..<position], as: UTF8.self)
                take(.neither, mark.utf8.count + hashes)
                literals.append(.init(place: start..<position, text: written, isLong: isLong))
                return
            } else if sees("\\" + tail + "(") {
                take(.neither, 2 + hashes)
                scanCode(untilParenthesis: true)
                take(.neither)
            } else if sees("\\" + tail) {
                take(.neither, 2 + hashes)
            } else {
                take(.neither)
            }
        }
    }
}
