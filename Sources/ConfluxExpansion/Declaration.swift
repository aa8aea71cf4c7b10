/// A struct or an enum, as far as its coding depends on it.
struct Declaration {
    /// A stored property, or an associated value of a case.
    struct Field {
        /// The label of an associated value, as in its source; nil if it has none.
        var label: String?
        /// Its key in the coding.
        let key: String
        /// Its type, as in its source.
        let type: String
        /// Whether it may be absent from the coding.
        let isOptional: Bool
    }

    struct Case {
        let name: Token
        let fields: [Field]
    }

    enum Content {
        case record([Field])
        case cases([Case])
        /// An enum whose cases stand for numbers or texts; with the type of these.
        case rawValues(String)
    }

    /// `public`, `package`, or nothing.
    private(set) var access = ""
    private(set) var content = Content.record([])
    private var tokens: ArraySlice<Token>

    /// Reads the source of a declaration.
    ///
    /// - Throws: `ExpansionFailure` if the type's coding can't be derived.
    init(_ source: String) throws {
        tokens = Token.all(in: source)[...]
        try readHead()
    }

    // MARK: Tokens

    private var next: String { tokens.first?.text ?? "" }

    /// Takes the next token: an empty one at the end.
    private mutating func take() -> Token {
        tokens.popFirst() ?? Token(text: "", beginsLine: true)
    }

    private mutating func take(_ text: String) -> Bool {
        guard next == text else { return false }
        tokens.removeFirst()
        return true
    }

    /// Takes what follows, up to a token outside of brackets that ends it.
    private mutating func take(until isEnd: (Token) -> Bool) -> [Token] {
        var taken: [Token] = []
        var depth = 0
        while let token = tokens.first, depth > 0 || !isEnd(token) && token.depthChange >= 0 {
            depth += token.depthChange
            taken.append(take())
        }
        return taken
    }

    /// Takes one group in brackets, if it is next.
    private mutating func skipGroup() {
        guard tokens.first?.depthChange == 1 else { return }
        var depth = 0
        repeat { depth += take().depthChange } while depth > 0 && !tokens.isEmpty
    }

    private mutating func skipAttributes() -> Bool {
        var hasSome = false
        while take("@") {
            hasSome = true
            _ = take()
            while take(".") { _ = take() }
            if next == "(", tokens.first?.beginsLine == false { skipGroup() }
        }
        return hasSome
    }

    // MARK: Head

    private static let modifiers: Set = [
        "public", "package", "internal", "fileprivate", "private", "final", "indirect", "static",
        "class", "lazy", "weak", "unowned", "override", "required", "convenience", "mutating",
        "nonmutating", "nonisolated", "open", "dynamic", "async",
    ]

    private mutating func readHead() throws {
        while skipAttributes() || Self.modifiers.contains(next) {
            if ["public", "package"].contains(next) { access = next + " " }
            if Self.modifiers.contains(next) {
                _ = take()
                skipGroup()
            }
        }
        let kind = next
        guard kind == "struct" || kind == "enum" else {
            throw ExpansionFailure("@CompactAction is for a struct or an enum.")
        }
        tokens = tokens.dropFirst(2)
        guard next != "<" else {
            throw ExpansionFailure(
                "@CompactAction can't derive the coding of a generic type. Adopt CompactCodable by hand."
            )
        }
        var inherited: [Token] = []
        if take(":") { inherited = take { $0.text == "{" || $0.text == "where" } }
        _ = take { $0.text == "{" }
        guard take("{") else { throw ExpansionFailure("@CompactAction found no members.") }
        if kind == "struct" {
            content = .record(try readMembers().fields)
        } else if let raw = inherited.first?.text, Self.rawTypes.contains(raw) {
            content = .rawValues(raw)
        } else {
            content = .cases(try readMembers().cases)
        }
    }

    private static let rawTypes: Set = [
        "String", "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32",
        "UInt64",
    ]

    // MARK: Members

    private mutating func readMembers() throws -> (fields: [Field], cases: [Case]) {
        var fields: [Field] = []
        var cases: [Case] = []
        while !tokens.isEmpty, next != "}" {
            if take(";") { continue }
            let hasAttribute = skipAttributes()
            var modifiers: Set<String> = []
            while Self.modifiers.contains(next), tokens.dropFirst().first?.text != "}" {
                // `class` may also begin a type within this one.
                if next == "class", modifiers.isDisjoint(with: ["override"]) { break }
                modifiers.insert(take().text)
                skipGroup()
            }
            switch next {
            case "#":
                throw ExpansionFailure(
                    "@CompactAction can't look behind #if. Adopt CompactCodable by hand.")
            case "case": cases += try readCases()
            case "var", "let":
                let isStored = modifiers.isDisjoint(with: ["static", "class"])
                if isStored, hasAttribute || modifiers.contains("lazy") {
                    throw ExpansionFailure(
                        "@CompactAction can't derive the coding of a property with a wrapper, an attribute or lazy. "
                            + "Adopt CompactCodable by hand.")
                }
                fields += try readProperties(areStored: isStored)
            default: try skipMember()
            }
        }
        return (fields, cases)
    }

    private mutating func skipMember() throws {
        let start = take { $0.text == "{" || $0.text == "=" }
        let words = start.map(\.name)
        let signature = words.joined(separator: " ")
        if signature.hasPrefix("enum CodingKeys") || signature.hasPrefix("init ( from ")
            || signature.hasPrefix("func encode ( to ")
        {
            throw ExpansionFailure(
                "@CompactAction derives what the compiler's own Codable writes, but this type writes its own: "
                    + "\(words.prefix(2).joined(separator: " ")). Adopt CompactCodable by hand.")
        }
        if next == "{" {
            skipGroup()
        } else if take("=") {
            _ = take { Self.beginsMember($0) }
        } else if start.isEmpty {
            throw ExpansionFailure("@CompactAction does not understand \"\(next)\".")
        }
    }

    private static let keywords: Set = [
        "case", "var", "let", "func", "init", "deinit", "subscript", "struct", "enum", "class",
        "actor", "protocol", "extension", "typealias", "static", "import", "@", "#", ";",
    ]

    private static func beginsMember(_ token: Token) -> Bool {
        token.text == ";"
            || token.beginsLine && (keywords.contains(token.text) || modifiers.contains(token.text))
    }

    /// Reads `case a, b(c: Int)`.
    private mutating func readCases() throws -> [Case] {
        _ = take()
        var cases: [Case] = []
        repeat {
            let name = take()
            guard name.isWord else {
                throw ExpansionFailure("@CompactAction found a case without a name.")
            }
            var fields: [Field] = []
            if take("(") {
                while !tokens.isEmpty, next != ")" {
                    let parts = take { $0.text == "," }
                    guard !parts.isEmpty else {
                        throw ExpansionFailure("@CompactAction does not understand \"\(next)\".")
                    }
                    fields.append(Self.field(of: parts, at: fields.count))
                    _ = take(",")
                }
                _ = take(")")
            }
            if take("=") { _ = take { $0.text == "," || Self.beginsMember($0) } }
            cases.append(Case(name: name, fields: fields))
        } while take(",")
        return cases
    }

    /// The field of an associated value, such as `place: String = ""`.
    private static func field(of parts: [Token], at index: Int) -> Field {
        let words = parts.prefix { $0.text != "=" }
        let start = labelEnd(words).map { $0 + 1 } ?? words.startIndex
        let label = start == words.startIndex ? "_" : words[words.startIndex].name
        return Field(
            label: label == "_" ? nil : label, key: label == "_" ? "_\(index)" : label,
            type: text(words[start...]), isOptional: isOptional(words[start...]))
    }

    /// Where the colon behind a label is; nil if there is none.
    private static func labelEnd(_ words: ArraySlice<Token>) -> Int? {
        guard let first = words.first, first.isWord else { return nil }
        return [1, 2].map { words.startIndex + $0 }.first {
            $0 < words.endIndex && words[$0].text == ":"
        }
    }

    private static func isOptional(_ type: ArraySlice<Token>) -> Bool {
        guard let last = type.last?.text else { return false }
        return last == "?" || last == "!" || type.first?.text == "Optional"
    }

    /// The source of a type.
    private static func text(_ type: ArraySlice<Token>) -> String {
        type.indices.reduce(into: "") { text, index in
            if index > type.startIndex, type[index - 1].isWord, type[index].isWord { text += " " }
            text += type[index].text
        }
    }

    /// Reads `var a: Int = 1, b: Int`, and returns those that are stored.
    private mutating func readProperties(areStored: Bool) throws -> [Field] {
        let isConstant = take().text == "let"
        var fields: [Field] = []
        repeat {
            let name = take()
            guard name.isWord else {
                throw ExpansionFailure(
                    "@CompactAction can't take a pattern apart. Declare each property by itself.")
            }
            var type: [Token] = []
            if take(":") {
                type = take {
                    ["=", ",", "{"].contains($0.text) || Self.beginsMember($0)
                }
            }
            var isStored = areStored
            if take("=") {
                if isConstant, areStored {
                    throw ExpansionFailure(
                        "\(name.name) always has the same value, so Codable writes it and does not read it. "
                            + "Make it static, or a variable.")
                }
                _ = take { $0.text == "," || Self.beginsMember($0) }
            } else if next == "{" {
                let observers = ["willSet", "didSet"]
                isStored = areStored && observers.contains(tokens.dropFirst().first?.text ?? "")
                skipGroup()
            }
            if isStored {
                fields.append(
                    Field(
                        label: name.text, key: name.name, type: Self.text(type[...]),
                        isOptional: Self.isOptional(type[...])))
            }
        } while take(",")
        return fields
    }
}
