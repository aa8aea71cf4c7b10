import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// The text of `conflux status` for people, in 80 columns unless names are too long for that.
enum StatusText {
    static let columns = 80
    static let storeTitles = ["STORE", "CREATED", "HOSTS", "SCHEMA", "SNAPSHOT", "STATUS"]

    static func lines(
        _ status: SequencerStatus, of sequencers: [SequencerPlace] = [], at address: String,
        _ look: Appearance = .plain
    ) -> [String] {
        let checkpoint =
            status.checkpoint == .zero ? "no checkpoint yet" : "checkpoint at \(status.checkpoint)"
        let server = sequencers.first { $0.isServing }?.address ?? address
        var lines = [
            "sequencer at \(server)", "log \(status.log), epoch \(status.epoch)",
            "entries from \(status.floor) to \(status.last), \(checkpoint)",
        ]
        if !sequencers.isEmpty {
            lines += TextTable(["SEQUENCER", "STATUS", "LAST ENTRY"], sequencers.map(row)).lines(
                columns: columns, look)
        }
        let gone = status.sessions.count { isForgettable($0) }
        lines += nodes(status).lines(columns: columns, look)
        if gone > 0 { lines += ["", "left, without a name: \(gone)"] }
        lines += stores(status).lines(columns: columns, look)
        let findings = findings(status)
        if !findings.isEmpty {
            lines +=
                [""]
                + findings.flatMap {
                    wrapped(
                        pieces: $0.split(separator: " ").map(String.init), columns: columns,
                        indent: 2)
                }.map { look.paint($0, .yellow) }
        }
        return lines
    }

    static func nodes(_ status: SequencerStatus) -> TextTable {
        TextTable(
            ["NODE", "SESSION", "STATUS", "LAG", "DISPATCHED", "STORES"],
            status.sessions.filter { !isForgettable($0) }.map { row($0, last: status.last) })
    }

    static func stores(_ status: SequencerStatus) -> TextTable {
        TextTable(storeTitles, status.stores.map(row))
    }

    /// Whether to leave a session out: a node without a name that has left, such as that of `conflux dispatch`.
    static func isForgettable(_ session: SessionStatus) -> Bool {
        session.name == nil && !session.isLive
    }

    private static func row(_ place: SequencerPlace) -> TextTable.Row {
        TextTable.Row(
            cells: [place.address, place.isServing ? "serving" : "standby"],
            list: [place.last.description])
    }

    /// A session's row. The table shortens its last cell, the stores.
    private static func row(
        _ session: SessionStatus, last: SequenceNumber
    ) -> TextTable.Row {
        TextTable.Row(
            cells: [
                session.name?.text ?? "-", session.incarnation.description,
                session.isLive ? "live" : "left",
                StatusFields.lag(of: session, last: last).map { "\($0)" } ?? "-",
                "\(session.lastCounter)",
            ], list: session.hosted.map(\.description))
    }

    static func row(_ store: StoreStatus) -> TextTable.Row {
        TextTable.Row(
            cells: [
                store.store.description, store.life.description, "\(store.hosts)",
                "\(store.schemaVersion)", store.snapshot.description,
            ], list: condition(of: store))
    }

    private static func condition(of store: StoreStatus) -> [String] {
        let trouble = [
            store.isFrozen ? "frozen" : nil, store.divergence != nil ? "diverged" : nil,
            store.stopped.isEmpty ? nil : "stopped",
        ].compactMap(\.self)
        return trouble.isEmpty ? ["ok"] : trouble
    }

    /// Sentences about replicas that differ or have stopped, and about a log without room.
    private static func findings(_ status: SequencerStatus) -> [String] {
        let names = status.names
        let divergences = status.stores.compactMap { store in
            store.divergence.map { DivergenceText.words(store.store, $0, names) }
        }
        let stops = status.stores.flatMap { store in
            store.stopped.map { replica in
                (replica.sequence == store.life
                    ? "\(store.store) could not be loaded in "
                    : "\(store.store) stopped before entry \(replica.sequence) in ")
                    + names.words(replica.node)
            }
        }
        let held = status.health?.held.map {
            "the log is nearly full, so no action is admitted: \($0)"
        }
        return divergences + stops + [held].compactMap(\.self)
    }
}
