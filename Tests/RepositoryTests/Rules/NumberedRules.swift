/// The rules of the protocol, with their numbers in docs/rules.md.
extension Rule {
    private static let document = "docs/rules.md"

    static let onePlace = Rule(name: "every numbered rule is one sentence and has one place") {
        tree in
        numberedRules(in: tree).flatMap { line, cells in
            let problem: String? =
                if cells.count != 4 {
                    "a row has a number, a rule, what it prevents, and its place"
                } else if !isSentence(cells[1]) {
                    "rule \(cells[0]) is not one sentence"
                } else {
                    problem(ofPlace: cells[3], tree)
                }
            return problem.map { [Violation(path: document, line: line, message: $0)] } ?? []
        }
    }

    static let knownRules = Rule(name: "every rule that a comment names is in docs/rules.md") {
        tree in
        let known = Set(numberedRules(in: tree).compactMap { $0.cells.first })
        return ["Sources", "Tests"].flatMap { folder in
            tree.texts.filter { $0.key.hasPrefix(folder + "/") && $0.key.hasSuffix(".swift") }
                .sorted { $0.key < $1.key }
                .flatMap { path, text in
                    text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
                        .flatMap { offset, line in
                            rulesNamed(in: line).filter { !known.contains($0) }.map {
                                Violation(
                                    path: path, line: offset + 1, message: "there is no rule \($0)")
                            }
                        }
                }
        }
    }

    /// The rows of the second table, with their line numbers.
    private static func numberedRules(in tree: Tree) -> [(line: Int, cells: [String])] {
        (tree.texts[document] ?? "").split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated().compactMap { offset, line in
                guard line.hasPrefix("| "), line.dropFirst(2).first?.isNumber == true else {
                    return nil
                }
                let cells = line.split(separator: "|").map { cell in
                    String(cell.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
                }
                return (offset + 1, cells)
            }
    }

    private static func isSentence(_ text: String) -> Bool {
        text.hasSuffix(".") && !text.dropLast().contains(where: { ".;:".contains($0) })
    }

    /// What is wrong with a place `file` or `file` (`declaration`); nil if it is right.
    private static func problem(ofPlace place: String, _ tree: Tree) -> String? {
        let names = place.split(separator: "`", omittingEmptySubsequences: false)
        guard names.count == 3 || (names.count == 5 && names[2] == " (" && names[4] == ")"),
            names[0].isEmpty
        else { return "a place is one file, and one declaration in it" }
        guard let text = tree.texts["Sources/\(names[1])"] else { return "there is no \(names[1])" }
        guard names.count == 5 else { return nil }
        let isThere = ["func ", "var ", "class ", "struct "].contains { keyword in
            text.split(separator: keyword + names[3]).dropFirst().contains {
                $0.first.map { !$0.isLetter && !$0.isNumber } ?? false
            }
        }
        return isThere ? nil : "\(names[1]) declares no \(names[3])"
    }

    /// The numbers after `rule` or `rules` in a comment.
    private static func rulesNamed(in line: Substring) -> [String] {
        guard let comment = line.firstRange(of: "//") else { return [] }
        let words = line[comment.upperBound...].split { !$0.isLetter && !$0.isNumber }
        return words.indices.flatMap { index -> [String] in
            guard words[index] == "rule" || words[index] == "rules" else { return [] }
            return words[(index + 1)...].prefix {
                $0.allSatisfy(\.isNumber) || $0 == "and" || $0 == "to"
            }.filter { $0.allSatisfy(\.isNumber) }.map(String.init)
        }
    }
}
