import ConfluxArguments
import ConfluxNode
import ConfluxWorker

/// `conflux ping`: measures how long the sequencer takes to answer.
enum PingCommand {
    private static let count = Option(
        "--count", default: 5, parse: .integer(in: 1...1_000_000), summary: "How often to ask.")
    private static let pause = Duration.milliseconds(200)

    static let description = Command(
        "ping", summary: "Measure how long the sequencer takes to answer.",
        discussion: """
            Asks the sequencer again and again, five times a second. An answer passes through the thread that orders \
            actions, and through no disk. With --json there is a line for each answer, and one at the end with the \
            statistics. Times are microseconds there.
            """,
        parameters: [count] + Connection.parameters,
        examples: [
            .init("Ask five times", "conflux ping"),
            .init("Ask once, for at most a second", "conflux ping -n 1 --timeout 1s"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let count = environment.arguments[count]
        let times = try await Connection.use(environment) {
            connection async throws(CommandFailure) in
            var times: [Duration] = []
            while true {
                let start = ContinuousClock.now
                guard case .alive = try await connection.ask(.alive) else { throw Connection.unfit }
                times.append(ContinuousClock.now - start)
                tell(times, of: connection.core.address, environment)
                guard times.count < count, !Task.isCancelled else { return times }
                await Pause.wait(for: pause)
                if Task.isCancelled { return times }
            }
        }
        let sorted = times.sorted()
        let mean = times.reduce(.zero, +) / times.count
        let figures = [
            ("least", sorted[0]), ("median", sorted[times.count / 2]), ("mean", mean),
            ("most", sorted[times.count - 1]),
        ]
        var fields: JSONFields = ["count": times.count]
        for (name, time) in figures { fields[name] = time.microseconds }
        environment.show(
            fields,
            "\(times.count) answers: "
                + figures.map { "\($0) \($1.milliseconds) ms" }.joined(separator: ", "))
        environment.output.flush()
        return .success
    }

    private static func tell(
        _ times: [Duration], of address: String, _ environment: CommandEnvironment
    ) {
        guard let time = times.last else { return }
        environment.show(
            ["microseconds": time.microseconds, "number": times.count],
            "answer \(times.count) of \(address): \(time.milliseconds) ms")
        environment.output.flush()
    }
}

extension Duration {
    fileprivate var microseconds: Int { Int(self / .microseconds(1)) }

    /// Milliseconds with two decimals.
    fileprivate var milliseconds: String {
        let hundredths = Int((self / .microseconds(10)).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}
