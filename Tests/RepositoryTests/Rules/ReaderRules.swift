/// What readers find: each page by one door, and a first page that is short.
extension Rule {
    static let readers: [Rule] = [doors, shortFirstPage]

    private static let map = "docs/README.md"

    static let doors = Rule(name: "every page is behind exactly one door") { tree in
        guard let text = tree.texts[map] else { return [] }
        var rows: [String: [Int]] = [:]
        for (offset, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated() where line.hasPrefix("| [")
        {
            guard let start = line.firstRange(of: "](")?.upperBound,
                let end = line[start...].firstIndex(of: ")")
            else { continue }
            rows[String(line[start..<end]), default: []].append(offset + 1)
        }
        let pages = tree.texts.keys.filter { path in
            path.hasPrefix("docs/") && path.hasSuffix(".md") && path != map
                && !path.hasPrefix("docs/decisions/")
        }.sorted()
        let missing = pages.filter { rows[String($0.dropFirst("docs/".count))] == nil }.map {
            Violation(path: map, message: "\($0) is behind no door: add it where it is needed")
        }
        let doubled = rows.filter { $0.value.count > 1 }.sorted { $0.key < $1.key }.map {
            Violation(
                path: map, line: $0.value[1],
                message: "\($0.key) is behind two doors: choose the one of those who need it most")
        }
        return missing + doubled
    }

    static let shortFirstPage = Rule(name: "the first page has at most 900 words") { tree in
        let words = (tree.texts["README.md"] ?? "").split(whereSeparator: \.isWhitespace).filter {
            $0.contains { $0.isLetter || $0.isNumber }
        }
        guard words.count > 900 else { return [] }
        return [
            Violation(
                path: "README.md",
                message: "\(words.count) words: move what not every reader needs to docs/")
        ]
    }
}
