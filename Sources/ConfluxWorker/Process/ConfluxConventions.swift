import ConfluxArguments

extension Conventions {
    /// What holds for every program of Conflux: `conflux`, workers and gateways.
    ///
    /// A variable is for what belongs to a process's surroundings: where the sequencer is and with which keys, which
    /// context, where this process is asked for its health, and how it prints. Everything else is an option.
    package static let conflux = {
        var all = Conventions()
        all.letters = [
            "--bind": "b", "--connect": "c", "--count": "n", "--data": "d", "--file": "F",
            "--follow": "f", "--json": "j", "--store": "s", "--tail": "n", "--watch": "w",
            "--yes": "y",
        ]
        all.variables = [
            "--connect": "CONFLUX_CONNECT", "--context": "CONFLUX_CONTEXT",
            "--curve-secret": "CONFLUX_CURVE_SECRET", "--http": "CONFLUX_HTTP",
            "--http-token": "CONFLUX_HTTP_TOKEN", "--json": "CONFLUX_JSON",
            "--log-level": "CONFLUX_LOG_LEVEL", "--server-key": "CONFLUX_SERVER_KEY",
        ]
        all.exitCodes = ExitCode.allCases.map { .init("\($0.rawValue)", $0.summary) }
        all.environment = [
            .init("NO_COLOR", "If it is not empty, text has no colours."),
            .init(
                "TERM", "If it is missing or dumb, text has no colours, and no line is overwritten."
            ),
            .init(
                "NOTIFY_SOCKET, WATCHDOG_USEC",
                "How a sequencer or a worker tells systemd that it is ready and makes progress."),
            .init(
                "JOURNAL_STREAM",
                "If it names the output, lines begin with their priority for the journal."),
        ]
        return all
    }()
}

extension Invocation {
    /// What to say of variables that no program reads, although they are named like options of this command: they have
    /// no effect.
    ///
    /// - Parameter variables: The environment.
    /// - Returns: A sentence for each of them.
    package func unreadVariables(_ variables: [String: String]) -> [String] {
        let prefix = "CONFLUX_"
        let read = Set(Conventions.conflux.variables.values)
        return variables.keys.sorted().compactMap { variable in
            guard variable.hasPrefix(prefix), !read.contains(variable) else { return nil }
            let name = variable.dropFirst(prefix.count).lowercased()
            let option = "--" + name.map { $0 == "_" ? "-" : $0 }
            guard describes(option: option) else { return nil }
            return "the variable \(variable) has no effect: give the option \(option)"
        }
    }
}
