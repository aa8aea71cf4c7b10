/// A text for people in the sources: a string literal of three words or more.
///
/// Every such literal counts, wherever it is used, so that no message can be missing in the list. Exceptions are
/// the texts of `--help`, which the man page shows; those of metrics, which docs/monitoring.md lists; shells'
/// completions; SQL; and the names of a frame's fields, which are parts of the sentence of a `WireError`.
struct Message: Hashable {
    let path: String
    /// What is made from the text, such as `NodeError .closed`, or the declaration or case that contains it.
    let maker: String
    /// The text on one line, with `{name}` for each interpolation.
    let text: String

    /// Its clauses of at least two words. An interpolation counts as one word.
    var clauses: [Substring] {
        text.replacing(/\{[^}]*\}/, with: "x").split { ".?;:".contains($0) }
            .filter { $0.split(separator: " ").count > 1 }
    }

    /// The messages of a file, in order.
    static func all(in source: SwiftSource, at path: String) -> [Message] {
        let code = Array(source.code.joined(separator: "\n").utf8)
        return sentences(source.literals, code).compactMap { place, text in
            let call = Call(around: place, in: code)
            guard text.split(separator: " ").filter(isWord).count >= 3, !call.isElsewhere,
                !path.contains("SQLite/") || !isSQL(text),
                !path.contains("/Wire/") || text.hasSuffix(".")
            else { return nil }
            return Message(path: path, maker: call.maker, text: text)
        }
    }

    /// The literals. Those with only a `+` between them are joined, and nested ones belong to the outer one.
    private static func sentences(_ literals: [SwiftSource.Literal], _ code: [UInt8])
        -> [(Range<Int>, String)]
    {
        var sentences: [(place: Range<Int>, text: String)] = []
        for literal in literals {
            let text = oneLine(literal)
            guard let last = sentences.last else {
                sentences.append((literal.place, text))
                continue
            }
            if literal.place.upperBound <= last.place.upperBound { continue }
            let between = code[last.place.upperBound..<literal.place.lowerBound]
            if String(decoding: between, as: UTF8.self).filter({ !$0.isWhitespace }) == "+" {
                sentences[sentences.count - 1] = (
                    last.place.lowerBound..<literal.place.upperBound, last.text + text
                )
            } else {
                sentences.append((literal.place, text))
            }
        }
        return sentences
    }

    private static func oneLine(_ literal: SwiftSource.Literal) -> String {
        var text = literal.text
        if literal.isLong {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: true)
            text = lines.map { $0.drop(while: \.isWhitespace) }.joined(separator: "\n")
                .replacing("\\\n", with: "").replacing("\n", with: " ")
        }
        var plain = ""
        var rest = text.replacing("\\n", with: " ").replacing("\\\"", with: "\"")[...]
        while let start = rest.firstRange(of: "\\(") {
            plain += rest[..<start.lowerBound]
            rest = rest[start.upperBound...]
            var depth = 1
            let inside = rest.prefix { character in
                depth += character == "(" ? 1 : character == ")" ? -1 : 0
                return depth > 0
            }
            let isName = inside.count < 40 && !inside.contains { $0 == "\"" || $0.isWhitespace }
            plain += isName ? "{\(inside)}" : "{…}"
            rest = rest[inside.endIndex...].dropFirst()
        }
        return (plain + rest).split(whereSeparator: \.isWhitespace).joined(separator: " ")
            + (text.last == " " && !literal.isLong ? " " : "")
    }

    private static func isWord(_ part: Substring) -> Bool {
        part.count > 1 && part.contains { $0.isLetter } && !part.hasPrefix("{")
    }

    /// Whether a text is an SQL statement or expression, or a list of columns.
    private static func isSQL(_ text: String) -> Bool {
        let keywords: Set = ["SELECT", "CREATE", "ALTER", "INSERT", "DELETE", "VACUUM", "NOT"]
        return text.contains(" || ") || !keywords.isDisjoint(with: text.words)
            || text.split(separator: " ").dropLast().allSatisfy { $0.hasSuffix(",") }
    }
}

/// The code around a literal, which shows its purpose.
private struct Call {
    /// The calls that contain the literal, outermost last: the names before the parentheses.
    private var calls: [(name: String, arguments: String)] = []
    private var declaration = ""

    /// The types that make help texts, metrics and keys.
    private static let others: Set = [
        "Option", "Flag", "Operand", "Command", "Example", "gauge", "counter", "histogram", "Nonce",
        "Array",
    ]
    private static let helpLabels: Set = ["help:", "summary:", "discussion:", "examples:"]

    init(around place: Range<Int>, in code: [UInt8]) {
        var end = place.lowerBound
        var depth = 0
        for index in stride(from: place.lowerBound - 1, through: 0, by: -1) {
            switch code[index] {
            case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"): depth += 1
            case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"):
                guard depth == 0 else {
                    depth -= 1
                    continue
                }
                let before = Self.line(before: index, in: code)
                if code[index] == UInt8(ascii: "(") {
                    let text = String(decoding: code[(index + 1)..<end], as: UTF8.self)
                    calls.append((Self.lastName(before), text))
                } else if code[index] == UInt8(ascii: "{") {
                    if declaration.isEmpty { declaration = Self.declared(before) ?? "" }
                    if !declaration.isEmpty { return }
                }
                end = index
            default: continue
            }
        }
    }

    var isElsewhere: Bool {
        calls.contains { call in
            Self.others.contains(call.name)
                || call.arguments.split(whereSeparator: \.isWhitespace).last
                    .map { Self.helpLabels.contains(String($0)) } ?? false
        }
    }

    var maker: String {
        let call = calls.first { $0.name.first?.isLetter == true }
        let name = call?.name ?? ""
        let code = call.map { Self.code(in: $0.arguments) } ?? ""
        let isType = name.first?.isUppercase == true
        return isType || declaration.isEmpty
            ? name + code : declaration + (name.isEmpty ? "" : " → \(name)") + code
    }

    /// The first `.name` that is itself an argument: `.usage, ` or `code: .closed`.
    private static func code(in arguments: String) -> String {
        for part in arguments.split(separator: ",") {
            let words = part.split(whereSeparator: \.isWhitespace)
            guard let word = words.last, words.count <= 2, word.hasPrefix("."),
                words.count == 1 || words[0] == "code:",
                word.dropFirst().allSatisfy({ $0.isLetter })
            else { continue }
            return " \(word)"
        }
        return ""
    }

    private static func line(before index: Int, in code: [UInt8]) -> String {
        // A declaration may have several lines.
        String(decoding: code[max(0, index - 400)..<index], as: UTF8.self)
    }

    private static func lastName(_ text: String) -> String {
        let name = text.reversed().prefix { $0.isLetter || $0.isNumber || "._#".contains($0) }
        let parts = String(name.reversed()).split(separator: ".")
        return parts.last == "init"
            ? parts.dropLast().last.map(String.init) ?? "" : parts.last.map(String.init) ?? ""
    }

    /// The name of the function, initializer or property whose braces open after a text.
    private static func declared(_ text: String) -> String? {
        let start = text.lastIndex { "{};".contains($0) }.map(text.index(after:)) ?? text.startIndex
        let words = String(text[start...]).words
        guard let keyword = words.lastIndex(where: { ["func", "var", "let", "init"].contains($0) })
        else { return nil }
        return words[keyword] == "init" ? "init" : words.dropFirst(keyword + 1).first
    }
}
