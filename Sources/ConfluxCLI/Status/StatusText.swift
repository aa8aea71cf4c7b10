import ConfluxNode
import ConfluxProtocol

/// `conflux status` for people, in 80 columns unless names are too long for that.
enum StatusText {
    private static let columns = 80

    static func lines(_ status: SequencerStatus, at address: String) -> [String] {
        let checkpoint =
            status.checkpoint == .zero ? "no checkpoint yet" : "checkpoint at \(status.checkpoint)"
        var lines = [
            "sequencer at \(address)", "log \(status.log), epoch \(status.epoch)",
            "entries from \(status.floor) to \(status.last), \(checkpoint)",
        ]
        let gone = status.sessions.count { isForgettable($0) }
        lines += table(
            ["NODE", "NUMBER", "IS", "LAG", "DISPATCHED", "HOSTS"],
            status.sessions.filter { !isForgettable($0) }.map { row($0, last: status.last) })
        if gone > 0 { lines += ["", "left, without a name: \(gone)"] }
        lines += table(
            ["STORE", "SINCE", "HOSTS", "VERSION", "SNAPSHOT", "IS"], status.stores.map(row))
        let findings = findings(status)
        if !findings.isEmpty { lines += [""] + findings.flatMap(wrapped) }
        return lines
    }

    /// Whether nobody looks for it: a node without a name that has left, like one of `conflux dispatch`.
    private static func isForgettable(_ session: SessionStatus) -> Bool {
        session.name == nil && !session.isLive
    }

    /// A session's row. Its last cell, the stores, is cut by the table.
    private static func row(_ session: SessionStatus, last: SequenceNumber) -> Row {
        Row(
            cells: [
                session.name?.text ?? "-", session.incarnation.description,
                session.isLive ? "live" : "left",
                StatusCommand.lag(of: session, last: last).map { "\($0)" } ?? "-",
                "\(session.lastCounter)",
            ], list: session.hosted.map(\.description))
    }

    private static func row(_ store: StoreStatus) -> Row {
        Row(
            cells: [
                store.store.description, store.life.description, "\(store.hosts)",
                "\(store.schemaVersion)", store.snapshot.description,
            ], list: condition(of: store))
    }

    private static func condition(of store: StoreStatus) -> [String] {
        [
            store.isFrozen ? "frozen" : nil, store.divergence != nil ? "diverged" : nil,
            store.stopped.isEmpty ? nil : "stopped",
        ].compactMap(\.self)
    }

    /// Where replicas differ, and where they go no further.
    private static func findings(_ status: SequencerStatus) -> [String] {
        let names = status.names
        let divergences = status.stores.compactMap { store in
            store.divergence.map { DivergenceText.words(store.store, $0, names) }
        }
        let stops = status.stores.flatMap { store in
            store.stopped.map { replica in
                "\(store.store) stopped before entry \(replica.sequence) in "
                    + NodeText.words(replica.node, names)
            }
        }
        return divergences + stops
    }

    // MARK: Layout

    private struct Row {
        /// One for each column but the last.
        var cells: [String]
        /// What stands in the last column, as far as there is room.
        var list: [String]
    }

    /// Rows under their titles, in columns, behind an empty line; nothing where there are no rows.
    private static func table(_ titles: [String], _ rows: [Row]) -> [String] {
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
        return ["", line(Array(titles.dropLast()), titles[titles.count - 1])]
            + rows.map { line($0.cells, cut($0.list, to: room)) }
    }

    /// As many words as there is room for, one at least, and how many more there are.
    private static func cut(_ list: [String], to room: Int) -> String {
        var shown = list
        while true {
            let more = list.count - shown.count
            let text = (shown + (more > 0 ? ["+\(more)"] : [])).joined(separator: " ")
            if text.count <= room || shown.count <= 1 { return text.isEmpty ? "-" : text }
            shown.removeLast()
        }
    }

    /// A sentence in lines, of which all but the first are indented.
    private static func wrapped(_ text: String) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > columns {
                lines.append(line)
                line = "  \(word)"
            } else {
                line += line.isEmpty ? "\(word)" : " \(word)"
            }
        }
        return lines + [line]
    }
}
