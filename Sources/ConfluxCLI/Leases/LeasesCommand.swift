import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux leases`: lists the claims for leases, or ends one.
enum LeasesCommand {
    private static let release = Option<SequenceNumber?>(
        "--release", valueName: "TOKEN", parse: .sequence,
        summary: """
            End the claim with this token. If it holds the lease, the next one in line gets it, and nothing that is \
            dispatched under it later is taken. You need the right to administer a store of the lease's name.
            """)

    static let description = Command(
        "leases", summary: "List who holds a lease and who waits for one, or end a claim.",
        discussion: """
            A process that wants a lease claims it. The claim that comes first holds it; the others wait in the order \
            of their tokens. A claim ends when its process releases it or leaves, or when the sequencer has heard \
            nothing of it for as long as conflux sequencer --silence says.
            """,
        parameters: [release] + Connection.parameters,
        examples: [
            .init("See who holds what", "conflux leases"),
            .init("Take a lease from a process that hangs", "conflux leases --release 1042"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        if let token = environment.arguments[release] { return try await end(token, environment) }
        let claims = try await Connection.use(environment) {
            connection async throws(CommandFailure) in try await connection.leases()
        }
        if environment.isJSON {
            for claim in claims { environment.output.print(JSONObject(claim.fields).json) }
            return .success
        }
        let table = TextTable(
            ["LEASE", "TOKEN", "STATUS", "SESSION", "NODE"], claims.map(\.row))
        let lines = table.lines(columns: columns, environment.output.appearance)
        for line in lines.isEmpty ? ["nobody has a lease or waits for one"] : lines.dropFirst() {
            environment.output.add(line)
        }
        return .success
    }

    private static let columns = 80

    private static func end(
        _ token: SequenceNumber, _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> ExitCode {
        let receipt = try await Connection.use(environment, as: .member) {
            connection async throws(CommandFailure) in
            try await failing { () async throws(DispatchError) in
                try await connection.core.release(token, within: connection.timeout)
            }
        }
        environment.show(
            ["released": token, "sequence": receipt.sequence], "released: the claim \(token)")
        return .success
    }
}

extension Connection {
    /// All claims that the sequencer lists for this key, ascending.
    func leases() async throws(CommandFailure) -> [LeaseStatus] {
        var all: [LeaseStatus] = []
        while true {
            guard case .leases(let page) = try await ask(.leases(behind: all.last?.number ?? .zero))
            else { throw Self.unfit }
            guard !page.isEmpty else { return all }
            all += page
        }
    }
}

extension LeaseStatus {
    fileprivate var fields: JSONFields {
        [
            "held": isHeld, "incarnation": session, "lease": name, "locks": locks ? true : nil,
            "node": node, "token": number,
        ]
    }

    private var words: String {
        switch (isHeld, locks) {
        case (true, false): "held"
        case (true, true): "locked"
        case (false, _): "waiting"
        }
    }

    fileprivate var row: TextTable.Row {
        TextTable.Row(
            cells: [name.description, "\(number)", words, "\(session)"],
            list: node.map { [$0.text] } ?? [])
    }
}

/// The options of commands that take a lease.
enum LeaseOptions {
    static let within = Option<Duration?>(
        "--within", parse: .duration(in: .milliseconds(1) ... .seconds(86_400 * 365)),
        summary: """
            How long to wait for the lease. If omitted, the command waits as long as it takes.
            """)

    /// Waits for a lease. An interruption ends the wait.
    static func take(
        _ name: StoreName, _ connection: Connection, _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Lease {
        let limit = environment.arguments[within]
        return try await environment.interruption.cancelling {
            () async throws(CommandFailure) in
            try await failing { () async throws(DispatchError) in
                try await connection.core.lease(name.description, locks: false, within: limit)
            }
        }
    }
}

extension ValueParser where Value == StoreName {
    /// The name of a lease.
    static var leaseName: ValueParser<StoreName> {
        ValueParser(
            "NAME",
            expecting: "a lease: name or name/part, each 1 to 64 characters of a-z 0-9 . _ -"
        ) { StoreName($0) }.completing(.asked("leases"))
    }
}
