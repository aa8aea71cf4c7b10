extension Rule {
    static let prose: [Rule] = [unfinished, links, documents]

    static let unfinished = Rule(name: "nothing is left for later") { tree in
        let marks: Set = ["TODO", "FIXME", "XXX"]
        let swift = tree.swift(in: "Sources", "Tests", "Benchmarks", "Fuzzing", "examples").map {
            ($0.path, $0.source.comments)
        }
        let scripts = scripts(in: tree).map { ($0, lines(of: $1)) }
        return (swift + scripts).flatMap { path, lines in
            lines.enumerated().filter { !marks.isDisjoint(with: $0.element.words) }.map {
                Violation(
                    path: path, line: $0.offset + 1,
                    message: "finish it now, or say it where plans are kept")
            }
        }
    }

    static let links = Rule(name: "every relative link leads somewhere") { tree in
        markdown(in: tree).flatMap { path, text in
            proseLines(of: text).flatMap { number, line in
                linkTargets(in: line).compactMap { target -> Violation? in
                    guard !target.contains("://"), !target.hasPrefix("mailto:") else { return nil }
                    return problem(of: target, from: path, in: tree).map {
                        Violation(path: path, line: number, message: $0)
                    }
                }
            }
        }
    }

    static let documents = Rule(name: "every document that is named exists") { tree in
        let swift = tree.swift(in: "Sources", "Tests", "Benchmarks", "Fuzzing", "examples").map {
            ($0.path, $0.source.comments)
        }
        let others = (markdown(in: tree) + scripts(in: tree)).map { ($0, lines(of: $1)) }
        return (swift + others).flatMap { path, lines in
            lines.enumerated().flatMap { offset, line in
                documentNames(in: line).filter { !tree.holds($0) }.map {
                    Violation(
                        path: path, line: offset + 1,
                        message: "there is no \($0); write it, or name the one that says this")
                }
            }
        }
    }

    private static func markdown(in tree: Tree) -> [(String, String)] {
        texts(in: tree) { $0.hasSuffix(".md") }
    }

    private static func scripts(in tree: Tree) -> [(String, String)] {
        texts(in: tree) { $0.hasPrefix("script/") || $0.hasPrefix(".ci/") }
    }

    private static func texts(in tree: Tree, where isMeant: (String) -> Bool) -> [(String, String)]
    {
        tree.texts.filter { isMeant($0.key) }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private static func lines(of text: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// The lines outside of fenced code, with blanks instead of code spans, counted from 1.
    private static func proseLines(of text: String) -> [(Int, String)] {
        var isFenced = false
        return lines(of: text).enumerated().compactMap { offset, line in
            if line.drop(while: \.isWhitespace).hasPrefix("```") {
                isFenced.toggle()
                return nil
            }
            guard !isFenced else { return nil }
            let parts = line.split(separator: "`", omittingEmptySubsequences: false)
            let prose = parts.enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element)
            return (offset + 1, prose.joined(separator: "code"))
        }
    }

    /// The targets of `[text](target)` and `[label]: target`.
    private static func linkTargets(in line: String) -> [String] {
        var targets = line.ranges(of: "](").compactMap { range -> String? in
            let rest = line[range.upperBound...]
            return rest.firstIndex(of: ")").map { String(rest[..<$0]) }
        }
        if line.hasPrefix("["), let range = line.firstRange(of: "]: ") {
            targets.append(String(line[range.upperBound...]))
        }
        // A title may follow the target.
        return targets.compactMap { $0.split(separator: " ").first.map(String.init) }
    }

    /// What is wrong with a link; nil if it leads to a file, a folder or a heading.
    private static func problem(of target: String, from path: String, in tree: Tree) -> String? {
        let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        guard let file = parts.first.map(String.init) else { return nil }
        var place = path.split(separator: "/").dropLast().map(String.init)
        if file.isEmpty {
            place = path.split(separator: "/").map(String.init)
        }
        for part in file.split(separator: "/") where part != "." {
            if part == "..", place.popLast() == nil {
                return "'\(target)' leads out of the repository"
            } else if part != ".." {
                place.append(String(part))
            }
        }
        let found = place.joined(separator: "/")
        guard found.isEmpty || tree.holds(found) else {
            return "'\(target)' leads nowhere; there is no \(found)"
        }
        guard parts.count > 1, let text = tree.texts[found], found.hasSuffix(".md") else {
            return nil
        }
        let headings = lines(of: text).filter { $0.hasPrefix("#") }.map(anchor)
        return headings.contains(String(parts[1]))
            ? nil : "'\(target)' leads to a heading that \(found) doesn't have"
    }

    /// The anchor of a heading: lower-case letters, digits, and dashes for spaces.
    private static func anchor(of heading: String) -> String {
        let title = heading.drop { $0 == "#" }.drop(while: \.isWhitespace).lowercased()
        return String(
            title.compactMap { character -> Character? in
                if character.isWhitespace { return "-" }
                let isKept =
                    character.isLetter || character.isNumber || character == "-"
                    || character == "_"
                return isKept ? character : nil
            })
    }

    /// The paths in the folder of documents that a line names.
    private static func documentNames(in line: String) -> [String] {
        line.ranges(of: "docs/").compactMap { range in
            if let before = line[..<range.lowerBound].last,
                before.isLetter || before.isNumber || "/._-".contains(before)
            {
                return nil
            }
            var name = line[range.lowerBound...].prefix { character in
                character.isASCII
                    && (character.isLetter || character.isNumber || "/._-".contains(character))
            }
            // A full stop ends a sentence, and a slash ends a folder's name.
            while let last = name.last, "./".contains(last) { name.removeLast() }
            return String(name)
        }
    }
}
