/// The tests and settings that documents name exist, and are as the documents say.
extension Rule {
    static let statements: [Rule] = [
        namedTests, runSamples, articlesOfProducts, statedBounds, listedBounds, onePlace,
        knownRules,
    ]

    static let namedTests = Rule(name: "every test that a document names exists") { tree in
        tree.texts.filter { $0.key.hasSuffix(".md") }.sorted { $0.key < $1.key }
            .flatMap { path, text in
                text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
                    .flatMap { offset, line in
                        namedTests(in: line).filter { !isTest($0.name, in: $0.file, tree) }.map {
                            Violation(
                                path: path, line: offset + 1,
                                message: "\($0.file) has no test `\($0.name)`")
                        }
                    }
            }
    }

    /// The tests that a line links to as [`name`](…/Tests/….swift).
    private static func namedTests(in line: Substring) -> [(name: String, file: String)] {
        line.split(separator: "[`", omittingEmptySubsequences: false).dropFirst().compactMap {
            part in
            guard let end = part.firstRange(of: "`]("),
                let close = part[end.upperBound...].firstIndex(of: ")"),
                let start = part[end.upperBound..<close].firstRange(of: "Tests/")?.lowerBound
            else { return nil }
            let file = part[start..<close]
            guard file.hasSuffix(".swift") else { return nil }
            return (String(part[..<end.lowerBound]), String(file))
        }
    }

    private static func isTest(_ name: String, in file: String, _ tree: Tree) -> Bool {
        guard let text = tree.texts[file] else { return false }
        return text.contains("func `\(name)`(") || text.contains("struct \(name) ")
    }

    // MARK: Samples

    /// The documents whose samples are parts of tests, with the folders of these tests.
    private static let samples = [
        (document: "README.md", folder: "Tests/ReadmeTests/"),
        (document: "docs/changing-a-state.md", folder: "Tests/ReadmeTests/"),
        (document: "docs/coming-from.md", folder: "Tests/ComingFromTests/"),
        (document: "docs/observing.md", folder: "Tests/ReadmeTests/"),
        (document: "docs/service.md", folder: "Tests/Service/"),
        (document: "docs/testing.md", folder: "Tests/ReadmeTests/"),
        (document: "docs/tutorial.md", folder: "Tests/Tutorial/"),
    ]

    /// The same for each product's article, and for each page for users of another library.
    private static func articles(in tree: Tree) -> [(document: String, folder: String)] {
        tree.texts.keys.filter { $0.contains(".docc/") }.sorted().map { ($0, "Tests/ReadmeTests/") }
            + tree.texts.keys.filter { $0.hasPrefix("docs/coming-from/") }.sorted()
            .map { ($0, "Tests/ComingFromTests/") }
    }

    static let articlesOfProducts = Rule(name: "every product has an article with a sample") {
        tree in
        let manifest = tree.texts["Package.swift"] ?? ""
        let products = manifest.split(separator: ".library(name: \"").dropFirst().map {
            $0.prefix { $0 != "\"" }
        }
        return products.map { "Sources/\($0)/\($0).docc/\($0).md" }.filter {
            swiftBlocks(in: tree.texts[$0] ?? "").isEmpty
        }.map { Violation(path: $0, message: "write what the product is for, and a sample") }
    }

    static let runSamples = Rule(name: "every sample that a test is to compile is part of one") {
        tree in
        (samples + articles(in: tree)).flatMap { document, folder in
            let tests = tree.texts.filter { $0.key.hasPrefix(folder) }.values.map(trimmedLines)
            return swiftBlocks(in: tree.texts[document] ?? "").filter { block in
                !tests.contains { contains($0, paragraphs(of: block.text)) }
            }.map {
                Violation(
                    path: document, line: $0.line,
                    message: "this sample stands in no file of \(folder)")
            }
        }
    }

    /// The paragraphs, which blank lines separate, without the lines' margins.
    private static func paragraphs(of text: String) -> [[Substring]] {
        text.split(separator: "\n", omittingEmptySubsequences: false).split(
            whereSeparator: \.isEmpty
        )
        .map { trimmedLines($0.joined(separator: "\n")) }
    }

    private static func trimmedLines(_ text: String) -> [Substring] {
        text.split(separator: "\n").map { line in
            let start = line.firstIndex { $0 != " " } ?? line.endIndex
            return line[start...]
        }.filter { !$0.isEmpty }
    }

    /// Whether the lines contain the paragraphs, each complete, in order.
    private static func contains(_ lines: [Substring], _ paragraphs: [[Substring]]) -> Bool {
        var rest = lines[...]
        for paragraph in paragraphs {
            while !rest.isEmpty, !rest.starts(with: paragraph) { rest = rest.dropFirst() }
            if rest.isEmpty { return false }
            rest = rest.dropFirst(paragraph.count)
        }
        return !paragraphs.isEmpty
    }

    /// The fenced blocks of Swift, each with the number of its first line.
    private static func swiftBlocks(in text: String) -> [(line: Int, text: String)] {
        var blocks: [(line: Int, text: String)] = []
        var isInside = false
        for (offset, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        {
            if line == "```swift" {
                blocks.append((offset + 1, ""))
                isInside = true
            } else if line.hasPrefix("```") {
                isInside = false
            } else if isInside {
                blocks[blocks.count - 1].text += line + "\n"
            }
        }
        return blocks
    }

    // MARK: Bounds

    private static let boundsPath = "docs/bounds.md"

    /// The types whose bounds must all be listed.
    private static let settings = [
        "SequencerSettings", "ReplicaSettings", "NodeSettings", "WireLimits", "SQLiteLogSettings",
        "SequencerConfiguration",
    ]

    static let statedBounds = Rule(name: "every bound has the value that is stated") { tree in
        let rows = boundRows(of: tree)
        guard !rows.isEmpty else { return [] }
        let types = types(in: tree)
        return rows.compactMap { row in
            guard let declared = declarations(of: row.setting, in: types) else {
                return Violation(
                    path: boundsPath, line: row.line,
                    message: "there is no \(row.setting); name the setting or the constant")
            }
            let values = declared.compactMap(Amount.init(source:))
            let isTrue = Amount(stated: row.value).map(values.contains) ?? values.isEmpty
            return isTrue
                ? nil
                : Violation(
                    path: boundsPath, line: row.line,
                    message: "\(row.setting) is not \(row.value): \(declared)")
        }
    }

    static let listedBounds = Rule(name: "every bound of the settings is listed") { tree in
        guard tree.texts[boundsPath] != nil else { return [] }
        let listed = Set(boundRows(of: tree).map(\.setting))
        let types = types(in: tree)
        return settings.flatMap { type in
            (types[type] ?? []).flatMap { path, code in
                code.enumerated().compactMap { offset, line in
                    let words = line.hasPrefix("    public ") ? line.words : []
                    guard words.count > 2,
                        ["var", "let"].contains(words[1]), words[2].hasSuffix("Max"),
                        !listed.contains("\(type).\(words[2])")
                    else { return nil }
                    return Violation(
                        path: path, line: offset + 1,
                        message: "\(boundsPath) does not list \(type).\(words[2])")
                }
            }
        }
    }

    private static func boundRows(
        of tree: Tree
    ) -> [(setting: String, value: String, line: Int)] {
        (tree.texts[boundsPath] ?? "").split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated().compactMap { offset, line in
                let cells = line.split(separator: "|").map { String($0).trimmed }
                guard line.hasPrefix("| `"), cells.count == 3 else { return nil }
                return (cells[0].filter { $0 != "`" }, cells[1], offset + 1)
            }
    }

    /// For each type, the files that declare or extend it, with their code.
    private static func types(in tree: Tree) -> [String: [(path: String, code: [String])]] {
        let kinds: Set = ["struct", "class", "enum", "extension"]
        var types: [String: [(path: String, code: [String])]] = [:]
        for (path, source) in tree.swift(in: "Sources") {
            var found: Set<String> = []
            for line in source.code where kinds.contains(where: line.contains) {
                let words = line.words
                for (kind, type) in zip(words, words.dropFirst()) where kinds.contains(kind) {
                    found.insert(type)
                }
            }
            for type in found { types[type, default: []].append((path, source.code)) }
        }
        return types
    }

    /// The values with which `Type.name` is declared in any file; nil if it is not declared.
    private static func declarations(
        of setting: String, in types: [String: [(path: String, code: [String])]]
    ) -> [String]? {
        let parts = setting.split(separator: ".").map(String.init)
        guard parts.count == 2 else { return nil }
        let name = parts[1]
        // Or as an argument of the same name, if a constant is made from several arguments.
        let label = "checked" + name.prefix(1).uppercased() + name.dropFirst()
        var isDeclared = false
        var values: [String] = []
        for (_, code) in types[parts[0]] ?? [] {
            for line in code where line.contains(name) || line.contains(label) {
                let words = line.words
                let isDeclaration = zip(words, words.dropFirst()).contains {
                    ["var", "let"].contains($0) && $1 == name
                }
                if isDeclaration {
                    isDeclared = true
                    let value = line.split(separator: "=", maxSplits: 1).dropFirst().first
                    let body = line.split(separator: "{").dropFirst().first?.prefix { $0 != "}" }
                    values.append(String(value ?? body ?? "").trimmed)
                } else {
                    for part in line.split(separator: ",") {
                        let pair = part.split(separator: ":").map { String($0).trimmed }
                        guard pair.count == 2, pair[0] == name || pair[0] == label else { continue }
                        values.append(pair[1].filter { $0 != ")" })
                    }
                }
            }
        }
        return isDeclared ? values : nil
    }
}

extension String {
    fileprivate var trimmed: String {
        String(drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
    }
}
