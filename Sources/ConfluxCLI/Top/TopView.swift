import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// The screen of `conflux top`: the sequencer, its nodes, stores and newest entries.
struct TopView {
    /// A status and its time.
    struct Look {
        var status: SequencerStatus
        var at: ContinuousClock.Instant
        /// How many actions each target has received.
        var counts: [Target: UInt64] = [:]
        /// How long the sequencer took to answer.
        var latency = Duration.zero

        fileprivate func actions(for store: StoreName) -> UInt64 {
            counts.reduce(0) { $1.key.concerns(store) ? $0 + $1.value : $0 }
        }
    }

    let address: String
    let look: Look
    /// The previous look; nil at first, when there are no rates.
    let former: Look?
    /// The newest entries, oldest first.
    let entries: [String]
    var choice = TopChoice()

    /// One line. It is cut before it is painted, so that an escape sequence is never cut.
    private struct Line {
        var text: String
        var style: Appearance.Style?
    }

    /// The screen's lines: at most as many, and as wide, as there is room.
    ///
    /// - Parameters:
    ///   - columns: How wide the screen is.
    ///   - rows: How high it is.
    ///   - paint: Gives a line a style: titles are bold, a node that lags is yellow, and one that left is faint.
    /// - Returns: The lines.
    func lines(
        columns: Int, rows: Int,
        paint: (_ text: String, _ style: Appearance.Style) -> String = { text, _ in text }
    ) -> [String] {
        let status = look.status
        let rate = rate(status.last.rawValue, former?.status.last.rawValue)
        let head = [
            Line(text: "conflux top  \(address)  \(rate)/s  q quits, ? helps", style: .bold),
            Line(
                text: "entries \(status.floor) to \(status.last), epoch \(status.epoch), status in "
                    + "\(Int(look.latency / .microseconds(1))) us\(chosen)"),
        ]
        if choice.isHelping {
            let help = TopChoice.help.map { Line(text: "  \($0): \($1)") }
            return painted(head + [Line(text: "")] + help, columns, rows, paint)
        }
        let sessions = scrolled(sessions)
        let nodes = Self.table(
            ["NODE", "NUMBER", "IS", "LAG", "DISPATCHES", "HOSTS"], sessions.map(row),
            styles: sessions.map(style), columns: columns)
        var titles = StatusText.storeTitles
        titles.insert("ACTIONS", at: 1)
        let stores = Self.table(titles, scrolled(self.stores).map(row), columns: columns)
        let entries = entries.filter(isWanted)
        // Each part gets a third of the screen. What one part does not use goes to the others.
        let room = max(0, rows - head.count)
        let nodeLines = Self.cut(nodes, to: max(room / 3, room - stores.count - entries.count - 2))
        let storeLines = Self.cut(
            stores, to: max(room / 3, room - nodeLines.count - entries.count - 2))
        let left = room - nodeLines.count - storeLines.count - 2
        let newest =
            left > 0 && !entries.isEmpty
            ? [Line(text: ""), Line(text: "LAST ENTRIES", style: .bold)]
                + entries.suffix(left).map { Line(text: $0) } : []
        return painted(head + nodeLines + storeLines + newest, columns, rows, paint)
    }

    private func painted(
        _ lines: [Line], _ columns: Int, _ rows: Int,
        _ paint: (_ text: String, _ style: Appearance.Style) -> String
    ) -> [String] {
        lines.prefix(rows).map { line in
            let text = String(line.text.prefix(columns))
            return line.style.map { paint(text, $0) } ?? text
        }
    }

    // MARK: What the keys have chosen

    /// What was chosen, for the title.
    private var chosen: String {
        var words = choice.order == .number ? "" : ", by \(choice.order.rawValue)"
        if choice.isTyping || !choice.filter.isEmpty {
            words += ", filter: \(choice.filter)\(choice.isTyping ? "_" : "")"
        }
        return words
    }

    private func isWanted(_ text: String) -> Bool {
        choice.filter.isEmpty || text.contains(choice.filter)
    }

    /// The rows from the offset on; the last one stays.
    private func scrolled<Row>(_ rows: [Row]) -> ArraySlice<Row> {
        rows.dropFirst(min(choice.offset, max(0, rows.count - 1)))
    }

    private var sessions: [SessionStatus] {
        let all = look.status.sessions.filter { session in
            !StatusText.isForgettable(session)
                && (isWanted(session.name?.text ?? "-")
                    || session.hosted.contains { isWanted($0.description) })
        }
        let lag = { StatusFields.lag(of: $0, last: look.status.last) ?? 0 }
        return switch choice.order {
        case .number: all
        case .name: all.sorted { ($0.name?.text ?? "~") < ($1.name?.text ?? "~") }
        case .lag: all.sorted { lag($0) > lag($1) }
        case .rate: all.sorted { gain(of: $0) > gain(of: $1) }
        }
    }

    private var stores: [StoreStatus] {
        let all = look.status.stores.filter { isWanted($0.store.description) }
        guard choice.order == .rate else { return all }
        return all.sorted { gain(of: $0) > gain(of: $1) }
    }

    /// How many actions a node has dispatched since the previous look.
    private func gain(of session: SessionStatus) -> UInt64 {
        let before = former?.status.sessions.first { $0.incarnation == session.incarnation }
        return session.lastCounter - min(session.lastCounter, before?.lastCounter ?? 0)
    }

    /// How many actions a store has received since the previous look.
    private func gain(of store: StoreStatus) -> UInt64 {
        let (now, before) = (look.actions(for: store.store), former?.actions(for: store.store))
        return now - min(now, before ?? 0)
    }

    private func row(_ store: StoreStatus) -> TextTable.Row {
        var row = StatusText.row(store)
        let counts = (look.actions(for: store.store), former?.actions(for: store.store))
        row.cells.insert(rate(counts.0, counts.1) + "/s", at: 1)
        return row
    }

    /// The lines of a table: an empty one, the titles, the rows with their styles.
    private static func table(
        _ titles: [String], _ rows: [TextTable.Row], styles: [Appearance.Style?] = [],
        columns: Int
    ) -> [Line] {
        TextTable(titles, rows).lines(columns: columns).enumerated().map { index, text in
            let row = index - 2
            if row < 0 { return Line(text: text, style: text.isEmpty ? nil : .bold) }
            return Line(text: text, style: row < styles.count ? styles[row] : nil)
        }
    }

    private func style(of session: SessionStatus) -> Appearance.Style? {
        guard session.isLive else { return .faint }
        guard let former, let lag = StatusFields.lag(of: session, last: look.status.last) else {
            return nil
        }
        // Under load a node is always a little behind. It lags if it lacks what was there at the look before.
        let added = look.status.last.rawValue.subtractingReportingOverflow(
            former.status.last.rawValue)
        return lag > (added.overflow ? 0 : added.partialValue) ? .yellow : nil
    }

    private func row(_ session: SessionStatus) -> TextTable.Row {
        let counter = former?.status.sessions
            .first { $0.incarnation == session.incarnation }?.lastCounter
        return TextTable.Row(
            cells: [
                session.name?.text ?? "-", session.incarnation.description,
                session.isLive ? "live" : "left",
                StatusFields.lag(of: session, last: look.status.last).map { "\($0)" } ?? "-",
                rate(session.lastCounter, counter) + "/s",
            ], list: session.hosted.map(\.description))
    }

    private func rate(_ now: UInt64, _ before: UInt64?) -> String {
        guard let before, let former, now >= before else { return "-" }
        let seconds = (look.at - former.at) / .seconds(1)
        return "\(Int(Double(now - before) / max(seconds, 0.001) + 0.5))"
    }

    /// As many lines as there is room for. The last one says how many more there are.
    private static func cut(_ lines: [Line], to room: Int) -> [Line] {
        guard lines.count > room else { return lines }
        guard room > 2 else { return [] }
        let more = Line(text: "… \(lines.count - room + 1) more", style: .faint)
        return lines.prefix(room - 1) + [more]
    }
}
