import ConfluxWorker

/// Text on a terminal that replaces itself in place. What was on the terminal before stays above it.
struct Redrawing {
    private let output: StandardOutput
    /// How many lines the terminal shows of the text.
    private var height = 0

    init(_ output: StandardOutput) { self.output = output }

    /// Shows these lines in place of the former ones: as many, and as much of each, as fit the terminal. So the
    /// terminal never scrolls for them twice.
    ///
    /// If the terminal can't redraw, the lines are printed one after the other.
    mutating func show(_ lines: [String]) {
        let look = output.appearance
        guard look.canRedraw else {
            for line in lines { output.add(line) }
            return output.flush()
        }
        // The cursor stands on the line below the text.
        var shown = lines
        let room = max(look.rows - 1, 1)
        if shown.count > room {
            let more = shown.count - room + 1
            shown = shown.prefix(room - 1) + ["… and \(more) more lines"]
        }
        let begin = height > 0 ? "\u{1B}[\(height)A" : ""
        let text = shown.map { "\(Self.cut($0, to: look.columns))\u{1B}[K" }
        height = shown.count
        output.print("\r\(begin)\(text.joined(separator: "\n"))\u{1B}[J")
    }

    /// The beginning of a line, with all of its escape sequences, which take no room.
    private static func cut(_ line: String, to columns: Int) -> String {
        var (text, room, isEscape) = ("", columns, false)
        for character in line {
            if character == "\u{1B}" { isEscape = true }
            if isEscape || room > 0 { text.append(character) }
            if isEscape {
                isEscape = character != "m"
            } else {
                room -= 1
            }
        }
        return text
    }
}
