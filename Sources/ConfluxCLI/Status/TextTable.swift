import ConfluxWorker

/// Rows under their titles, in columns.
struct TextTable {
    struct Row {
        /// One for each column but the last.
        var cells: [String]
        /// The words of the last column, which are shown as far as there is room.
        var list: [String]
    }

    let titles: [String]
    let rows: [Row]

    init(_ titles: [String], _ rows: [Row]) {
        self.titles = titles
        self.rows = rows
    }

    /// Lays the table out.
    ///
    /// - Parameters:
    ///   - columns: The most columns of the table. A row may be wider if even one word is too long.
    ///   - look: How the terminal shows the titles.
    /// - Returns: An empty line and the table; nothing if there are no rows.
    func lines(columns: Int, _ look: Appearance = .plain) -> [String] {
        guard !rows.isEmpty else { return [] }
        let widths = titles.indices.dropLast().map { column in
            rows.reduce(titles[column].count) { max($0, $1.cells[column].count) }
        }
        let room = columns - widths.reduce(0) { $0 + $1 + 2 }
        func line(_ cells: [String], _ last: String) -> String {
            zip(cells, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count + 2)
            }.joined() + last
        }
        return ["", look.paint(line(Array(titles.dropLast()), titles[titles.count - 1]), .bold)]
            + rows.map { line($0.cells, Self.cut($0.list, to: room)) }
    }

    /// As many words as there is room for, at least one, and how many more there are.
    private static func cut(_ list: [String], to room: Int) -> String {
        var shown = list
        while true {
            let more = list.count - shown.count
            let text = (shown + (more > 0 ? ["+\(more)"] : [])).joined(separator: " ")
            if text.count <= room || shown.count <= 1 { return text.isEmpty ? "-" : text }
            shown.removeLast()
        }
    }
}
