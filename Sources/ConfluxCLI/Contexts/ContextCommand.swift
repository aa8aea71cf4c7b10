import ConfluxArguments
import ConfluxNode
import ConfluxSystem
import ConfluxVocabulary
import ConfluxWorker
import ConfluxZeroMQ
import Foundation

/// `conflux context`: names for sequencers, so that commands find them without options.
enum ContextCommand {
    /// The option with which a command takes another context.
    static let option = Option<String?>(
        "--context", valueName: "NAME", parse: .contextName,
        summary: "Take the address and the keys from this context. See conflux context --help.")

    private static let name = Operand("NAME", parse: .contextName, summary: "The context's name.")
    private static let shown = Operand<String?>(
        optional: "NAME", parse: .contextName,
        summary: "The context's name. If omitted, the one in use.")
    private static let connect = Option<String?>(
        "--connect", valueName: "ADDRESS", parse: .text,
        summary: "Where the sequencer listens.")
    private static let secret = Option<String?>(
        "--curve-secret", valueName: "FILE", parse: .file, summary: "Your secret key.")
    private static let serverKey = Option<String?>(
        "--server-key", valueName: "FILE|KEY", parse: .file,
        summary: "The sequencer's public key: the file with it, or its 40 characters.")

    static let description = Command(
        "context", summary: "Name sequencers, and choose which one commands use.",
        discussion: """
            A context has the address and the keys of a sequencer. Without a subcommand, the command \
            lists them. An option of a command wins over its variable, \
            the variable over the context, and the context over the default. --context or \
            CONFLUX_CONTEXT selects a context other than the one in use. Contexts are kept in \
            $XDG_CONFIG_HOME/conflux/contexts.json, or in ~/.config. A sequencer and workers do not \
            read them.
            """,
        parameters: [WorkerOptions.json],
        examples: [
            .init(
                "Name a sequencer",
                "conflux context set production --connect tcp://10.0.0.5:7400 "
                    + "--curve-secret ops.secret --server-key sequencer.public"),
            .init("Use it from now on", "conflux context use production"),
            .init("Ask another one once", "conflux status --context staging"),
        ],
        subcommands: [
            Command(
                "list", summary: "List the contexts, with a star at the one in use.",
                parameters: [WorkerOptions.json]),
            Command(
                "set", summary: "Create or change a context.",
                discussion:
                    "Options that you leave out keep their values. Paths are stored as absolute "
                    + "paths.",
                parameters: [name, connect, secret, serverKey, WorkerOptions.json],
                examples: [
                    .init(
                        "Change an address",
                        "conflux context set staging --connect tcp://10.0.0.6:7400")
                ]),
            Command(
                "use", summary: "Use a context from now on.",
                parameters: [name, WorkerOptions.json]),
            Command(
                "show", summary: "Show a context.",
                parameters: [shown, WorkerOptions.json]),
            Command(
                "remove", summary: "Remove a context.", parameters: [name, WorkerOptions.json]),
        ], runsAlone: true)

    /// Runs the command or one of its subcommands.
    static func run(_ environment: CommandEnvironment) throws(CommandFailure) -> ExitCode {
        let file = ContextFile(ProcessInput.variables)
        let arguments = environment.arguments
        var contexts = try file.read()
        guard arguments.describes(Self.name) else {
            list(contexts, environment)
            if contexts.names.isEmpty {
                environment.diagnostics.note(
                    "there is no context yet; make one with `conflux context set NAME --connect ADDRESS`"
                )
            }
            return .success
        }
        if arguments.command == "context show" {
            guard let name = arguments[shown] ?? contexts.current else {
                throw CommandFailure(
                    .notFound, code: "noContext",
                    "No context is in use. Choose one with `conflux context use NAME`.")
            }
            let fields = try contexts.fields(of: name).sorted { $0.key < $1.key }
            let lines = fields.map { "\(Self.optionName($0)) \($1)" }
            show(environment, contexts, name, lines.joined(separator: "\n"))
            return .success
        }
        let name = arguments[name]
        var text: String
        switch arguments.command {
        case "context set":
            try set(&contexts, arguments)
            text = "set: \(name)"
            if contexts.current != name {
                text += "; commands use it after `conflux context use \(name)`"
            }
        case "context use":
            _ = try contexts.fields(of: name)
            contexts.current = name
            text = "in use: \(name)"
        default:
            _ = try contexts.fields(of: name)
            contexts.named[name] = nil
            text = "removed: \(name)"
            if contexts.current == name {
                contexts.current = nil
                text += "; no context is in use now"
            }
        }
        try file.write(contexts)
        show(environment, contexts, name, text)
        return .success
    }

    private static func list(_ contexts: Contexts, _ environment: CommandEnvironment) {
        guard !environment.isJSON else {
            for name in contexts.names { show(environment, contexts, name, "") }
            return
        }
        let rows = contexts.names.map { name in
            let address = contexts.named[name]?["connect"] ?? ""
            return TextTable.Row(
                cells: [contexts.current == name ? "*" : "", name], list: [address])
        }
        let table = TextTable(["IN USE", "CONTEXT", "ADDRESS"], rows)
        for line in table.lines(columns: 80, environment.output.appearance).dropFirst() {
            environment.output.add(line)
        }
    }

    private static func set(
        _ contexts: inout Contexts, _ arguments: Invocation
    ) throws(CommandFailure) {
        let name = arguments[name]
        var fields = contexts.named[name] ?? [:]
        // Values of environment variables belong to the shell, not to the context.
        func given(_ option: Option<String?>) -> String? {
            arguments.source(of: option) == .commandLine ? arguments[option] : nil
        }
        if let address = given(connect) {
            do throws(ZeroMQError) {
                _ = try Endpoint.list(address)
            } catch {
                throw CommandFailure(.usage, error.message)
            }
            fields["connect"] = address
        }
        if let path = given(secret) { fields["curveSecret"] = try absolute(path) }
        if let key = given(serverKey) {
            if CurvePublicKey(key) == nil {
                fields["serverKey"] = KeyFile.unambiguous(try absolute(key))
            } else {
                fields["serverKey"] = try failing { () throws(KeyFileError) in
                    try KeyFile.publicKey(key).description
                }
            }
        }
        guard fields["connect"] != nil else {
            throw CommandFailure(
                .usage, code: "noAddress",
                "The context '\(name)' is new: say where its sequencer is, with --connect ADDRESS.")
        }
        guard (fields["curveSecret"] == nil) == (fields["serverKey"] == nil) else {
            throw CommandFailure(
                .usage, code: "usage", "--curve-secret and --server-key go together; give both.")
        }
        contexts.named[name] = fields
    }

    /// - Throws: ``CommandFailure`` if the present folder has no name in UTF-8, with which the file could be found
    ///   again.
    private static func absolute(_ path: String) throws(CommandFailure) -> String {
        guard !Folder.isAbsolute(path) else { return path }
        guard let folder = getcwd(nil, 0) else {
            let reason = SystemFailure(errno, at: ".").reason(
                advice: "Give the whole path of \(path).")
            throw CommandFailure(
                .noInput, code: "folderUnknown", "The present folder can't be found: \(reason)")
        }
        defer { free(folder) }
        do throws(InvalidUTF8) {
            return "\(try String(utf8CString: folder))/\(path)"
        } catch {
            throw CommandFailure(
                .usage, code: "usage",
                "The path of the present folder can't be kept in a context: \(error). Give the whole "
                    + "path of a file elsewhere.")
        }
    }

    private static func optionName(_ member: String) -> String {
        switch member {
        case "curveSecret": "--curve-secret"
        case "serverKey": "--server-key"
        default: "--\(member)"
        }
    }

    private static func show(
        _ environment: CommandEnvironment, _ contexts: Contexts, _ name: String, _ text: String
    ) {
        let fields: JSONFields = ["current": contexts.current == name, "name": name]
        environment.show(fields.merging(contexts.named[name] ?? [:]) { $1 }, text)
    }
}

extension Connection {
    /// The parameters that `open` reads.
    static let parameters: [any ParameterKey] = [
        WorkerOptions.connect, WorkerOptions.secret, WorkerOptions.serverKey, WorkerOptions.timeout,
        ContextCommand.option, WorkerOptions.json,
    ]
    /// Those of a command that follows the feed.
    static let followingParameters: [any ParameterKey] = parameters + [WorkerOptions.feed]
}

extension ValueParser where Value == String {
    /// The name of a context.
    static var contextName: ValueParser<String> {
        ValueParser("NAME", expecting: "a name: 1 to 64 characters of a-z 0-9 . _ -") {
            Name($0)?.text
        }.completing(.asked("contexts"))
    }
}
