import ConfluxNode
import ConfluxProtocol

/// The screen of `conflux top`: the sequencer, its nodes, stores and newest entries.
struct TopView {
    /// A status and its time.
    struct Look {
        var status: SequencerStatus
        var at: ContinuousClock.Instant
    }

    let address: String
    let look: Look
    /// The previous look; nil at first, when there are no rates.
    let former: Look?
    /// The newest entries, oldest first.
    let entries: [String]

    /// The screen's lines, cut to the screen's size.
    func lines(columns: Int, rows: Int) -> [String] {
        let status = look.status
        let rate = rate(status.last.rawValue, former?.status.last.rawValue)
        let head = [
            "conflux top  \(address)  \(rate)/s  q quits",
            "entries \(status.floor) to \(status.last), epoch \(status.epoch)",
        ]
        let sessions = status.sessions.filter { !StatusText.isForgettable($0) }
        let nodes = TextTable(
            ["NODE", "NUMBER", "IS", "LAG", "DISPATCHES", "HOSTS"], sessions.map(row)
        ).lines(columns: columns)
        let stores = TextTable(StatusText.storeTitles, status.stores.map(StatusText.row))
            .lines(columns: columns)
        // Each part gets a third of the screen; what one part does not use goes to the others.
        let room = max(0, rows - head.count)
        let nodeLines = Self.cut(nodes, to: max(room / 3, room - stores.count - entries.count - 2))
        let storeLines = Self.cut(
            stores, to: max(room / 3, room - nodeLines.count - entries.count - 2))
        let left = room - nodeLines.count - storeLines.count - 2
        let newest =
            left > 0 && !entries.isEmpty ? ["", "LAST ENTRIES"] + entries.suffix(left) : []
        return (head + nodeLines + storeLines + newest).prefix(rows).map {
            String($0.prefix(columns))
        }
    }

    private func row(_ session: SessionStatus) -> TextTable.Row {
        let counter = former?.status.sessions
            .first { $0.incarnation == session.incarnation }?.lastCounter
        return TextTable.Row(
            cells: [
                session.name?.text ?? "-", session.incarnation.description,
                session.isLive ? "live" : "left",
                StatusCommand.lag(of: session, last: look.status.last).map { "\($0)" } ?? "-",
                rate(session.lastCounter, counter) + "/s",
            ], list: session.hosted.map(\.description))
    }

    private func rate(_ now: UInt64, _ before: UInt64?) -> String {
        guard let before, let former, now >= before else { return "-" }
        let seconds = (look.at - former.at) / .seconds(1)
        return "\(Int(Double(now - before) / max(seconds, 0.001) + 0.5))"
    }

    /// As many lines as there is room for. The last one says how many more there are.
    private static func cut(_ lines: [String], to room: Int) -> [String] {
        guard lines.count > room else { return lines }
        guard room > 2 else { return [] }
        return lines.prefix(room - 1) + ["… \(lines.count - room + 1) more"]
    }
}
