/// Breaks a text at its spaces into lines of at most this many characters.
///
/// A word that is longer than a line gets a line of its own.
func wrapped(_ text: String, columns: Int) -> [String] {
    let words = text.split(whereSeparator: \.isWhitespace).map(String.init)
    return wrapped(pieces: words, columns: columns, indent: 0)
}

/// Joins pieces with spaces into lines of at most this many characters, and breaks no piece.
///
/// - Parameters:
///   - pieces: The pieces, in order.
///   - columns: The width of a line.
///   - indent: How far the second and later lines are indented.
/// - Returns: The lines.
package func wrapped(pieces: [String], columns: Int, indent: Int) -> [String] {
    let margin = String(repeating: " ", count: indent)
    var lines: [String] = []
    var line: String?
    for piece in pieces {
        if let started = line {
            if started.count + 1 + piece.count <= columns {
                line = started + " " + piece
            } else {
                lines.append(started)
                line = margin + piece
            }
        } else {
            line = piece
        }
    }
    if let line { lines.append(line) }
    return lines
}

extension String {
    /// The text, with spaces behind it up to a width.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}

/// The paragraphs of a text, which empty lines separate.
func paragraphs(_ text: String) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false)
        .split { line in line.allSatisfy(\.isWhitespace) }
        .map { $0.joined(separator: " ") }
}
