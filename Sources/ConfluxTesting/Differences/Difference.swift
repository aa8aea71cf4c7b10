/// Shows the difference of two values line by line.
enum Difference {
    /// How many equal lines are shown around a difference.
    private static let contextLines = 3
    /// The most lines that are shown.
    private static let linesMax = 200
    /// If more lines differ than this, they are not matched with each other: the cost grows with their square.
    private static let matchedLinesMax = 2_000

    /// The lines of two values. Lines that only the expected value has begin with `-`, and lines that only the actual
    /// value has begin with `+`.
    ///
    /// - Parameters:
    ///   - expected: The expected value.
    ///   - actual: The actual value; not equal to the expected one.
    /// - Returns: Several lines, indented.
    static func text(expected: Any, actual: Any) -> String {
        var marked = mark(ValueText.lines(of: expected), ValueText.lines(of: actual))
        if !marked.contains(where: { $0.mark != " " }) {
            marked = mark(
                ValueText.lines(of: expected, isDeep: true),
                ValueText.lines(of: actual, isDeep: true))
        }
        guard marked.contains(where: { $0.mark != " " }) else {
            if marked.count >= ValueText.linesMax {
                return
                    "    The first \(ValueText.linesMax) lines of the two are alike; the rest is not shown."
            }
            return """
                    \(ValueText.line(of: actual))

                The two are written alike and are not equal: does `==` look at something that is \
                not a stored property?
                """
        }
        var lines = shorten(marked)
        if lines.count > linesMax {
            lines = lines.prefix(linesMax) + ["… (\(lines.count - linesMax) more lines)"]
        }
        return (lines.map { "    \($0)" } + ["", "(- expected, + actual)"]).joined(separator: "\n")
    }

    private struct MarkedLine {
        let mark: Character
        let text: String
    }

    private static func mark(_ expected: [String], _ actual: [String]) -> [MarkedLine] {
        let start = zip(expected, actual).prefix { $0 == $1 }.count
        let end = zip(
            expected.dropFirst(start).reversed(), actual.dropFirst(start).reversed()
        ).prefix { $0 == $1 }.count
        let left = Array(expected.dropFirst(start).dropLast(end))
        let right = Array(actual.dropFirst(start).dropLast(end))
        return expected.prefix(start).map { MarkedLine(mark: " ", text: $0) }
            + match(left, right)
            + expected.suffix(end).map { MarkedLine(mark: " ", text: $0) }
    }

    private static func match(_ left: [String], _ right: [String]) -> [MarkedLine] {
        guard max(left.count, right.count) <= matchedLinesMax else {
            return left.map { MarkedLine(mark: "-", text: $0) }
                + right.map { MarkedLine(mark: "+", text: $0) }
        }
        let difference = right.difference(from: left)
        var removed: Set<Int> = []
        var inserted: Set<Int> = []
        for change in difference {
            switch change {
            case .remove(let offset, _, _): removed.insert(offset)
            case .insert(let offset, _, _): inserted.insert(offset)
            }
        }
        var lines: [MarkedLine] = []
        var (old, new) = (0, 0)
        while old < left.count || new < right.count {
            if removed.contains(old) {
                lines.append(MarkedLine(mark: "-", text: left[old]))
                old += 1
            } else if inserted.contains(new) {
                lines.append(MarkedLine(mark: "+", text: right[new]))
                new += 1
            } else {
                lines.append(MarkedLine(mark: " ", text: left[old]))
                old += 1
                new += 1
            }
        }
        return lines
    }

    /// Leaves out equal lines that are far from a difference.
    private static func shorten(_ lines: [MarkedLine]) -> [String] {
        var isNear = Array(repeating: false, count: lines.count)
        for index in lines.indices where lines[index].mark != " " {
            let from = max(0, index - contextLines)
            let to = min(lines.count - 1, index + contextLines)
            for near in from...to { isNear[near] = true }
        }
        var shown: [String] = []
        var index = 0
        while index < lines.count {
            let end = lines[index...].indices.first { isNear[$0] } ?? lines.count
            // A single line takes no more room than the note that it was left out.
            if end - index > 1 {
                shown.append("  … (\(end - index) lines alike)")
                index = end
                continue
            }
            shown.append("\(lines[index].mark) \(lines[index].text)")
            index += 1
        }
        return shown
    }
}
