import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux status`: the sequencer's view of itself, of the nodes and of the stores.
enum StatusCommand {
    static let description = Command(
        "status", summary: "Show the sequencer, its sessions and the stores.",
        discussion: """
            A session's lag is the number of entries that its replicas have not applied yet. A \
            session that hosts nothing has none.
            """,
        parameters: Connection.parameters,
        examples: [.init("Show who is there", "conflux status")])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let connection = try await Connection.open(environment, as: .observer)
        let status = try await environment.interruption.cancelling {
            () async throws(CommandFailure) in try await connection.status()
        }
        await connection.close()
        let address = environment.arguments[WorkerOptions.connect]
        if environment.isJSON {
            environment.output.print(json(status, at: address))
        } else {
            for line in text(status, at: address) { environment.output.add(line) }
        }
        return .success
    }

    static func json(_ status: SequencerStatus, at address: String) -> JSONValue {
        [
            "address": .string(address), "epoch": .number(status.epoch),
            "floor": .number(status.floor), "last": .number(status.last),
            "log": .string(status.log.description),
            "sessions": .array(status.sessions.map { json($0, last: status.last) }),
            "stores": .array(
                status.stores.map { store in
                    [
                        "hosts": .number(UInt64(store.hosts)), "life": .number(store.life),
                        "schemaVersion": .number(UInt64(store.schemaVersion)),
                        "store": .string(store.store.description),
                    ]
                }),
        ]
    }

    private static func json(_ session: SessionStatus, last: SequenceNumber) -> JSONValue {
        var fields: JSONObject = [
            "bridged": .texts(session.bridged), "dispatched": .number(session.lastCounter),
            "hosted": .texts(session.hosted), "incarnation": .number(session.incarnation),
            "live": .bool(session.isLive),
        ]
        fields["name"] = session.name.map { .string($0.text) }
        if let lag = lag(of: session, last: last) {
            fields["applied"] = .number(session.applied)
            fields["lag"] = .number(lag)
        }
        return .object(fields)
    }

    /// How many entries a session's replicas have not applied yet; nil where it has none.
    private static func lag(of session: SessionStatus, last: SequenceNumber) -> UInt64? {
        guard !session.hosted.isEmpty || !session.bridged.isEmpty else { return nil }
        return last.rawValue - min(session.applied.rawValue, last.rawValue)
    }

    static func text(_ status: SequencerStatus, at address: String) -> [String] {
        var lines = [
            "sequencer at \(address): epoch \(status.epoch) of log \(status.log)",
            "entries from \(status.floor) to \(status.last)",
        ]
        let sessions = status.sessions.map { session in
            [
                session.name?.text ?? "-", session.incarnation.description,
                session.isLive ? "live" : "left",
                lag(of: session, last: status.last).map { "\($0)" } ?? "-",
                "\(session.lastCounter)",
                session.hosted.isEmpty
                    ? "-" : session.hosted.map(\.description).joined(separator: " "),
            ]
        }
        lines += table(["NODE", "NUMBER", "IS", "LAG", "DISPATCHED", "HOSTS"], sessions)
        let stores = status.stores.map { store in
            [store.store.description, store.life.description, "\(store.hosts)"]
        }
        lines += table(["STORE", "SINCE", "HOSTS"], stores)
        return lines
    }

    /// Rows under their titles, in columns; nothing where there are no rows.
    private static func table(_ titles: [String], _ rows: [[String]]) -> [String] {
        guard !rows.isEmpty else { return [] }
        let widths = titles.indices.map { column in
            ([titles] + rows).map { $0[column].count }.max() ?? 0
        }
        let lines = ([titles] + rows).map { row in
            zip(row, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count)
            }.joined(separator: "  ")
        }
        return [""]
            + lines.map { line in
                String(line.reversed().drop { $0 == " " }.reversed())
            }
    }
}
