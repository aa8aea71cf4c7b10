import ConfluxArguments
import ConfluxNode
import ConfluxWorker

/// `conflux keygen`: makes a key pair.
enum KeygenCommand {
    private static let name = Operand(
        "NAME", parse: .text,
        summary: "The name of the files NAME.secret and NAME.public. It may be a path.")

    static let description = Command(
        "keygen", summary: "Make a key pair for encrypted connections.",
        discussion: """
            Writes NAME.secret, which only its owner may read, and NAME.public. Prints the \
            public key. It never overwrites a file.

            Give a sequencer its secret key with --curve-secret. With --authorized, give it a \
            file that has a line for each key that may connect: a name, the public key and its \
            rights. Give every other process its own secret key with --curve-secret, and the \
            sequencer's public key with --server-key.
            """,
        parameters: [name, WorkerOptions.json],
        files: [
            .init("NAME.secret", "The secret key. Only its owner may read it."),
            .init("NAME.public", "The public key."),
        ],
        examples: [
            .init("A pair for a sequencer", "conflux keygen sequencer"),
            .init(
                "Authorise a worker",
                "conflux keygen worker-1 | sed 's/^/worker-1 /; s/$/ all/' >> authorized"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let pair = CurveKeyPair.random()
        let paths = try failing { () throws(KeyFileError) in
            try KeyFile.write(pair, name: environment.arguments[name])
        }
        let key = pair.publicKey.description
        environment.show(
            ["public": paths.public, "publicKey": key, "secret": paths.secret], key)
        return .success
    }
}
