import ConfluxArguments
import ConfluxWorker
import ConfluxZeroMQ

/// The options of a gateway, besides those of a worker.
enum GatewayOptions {
    static let publish = Option<[Publication]>(
        repeated: "--publish", parse: .publication,
        summary: """
            Where subscribers connect: tcp://HOST:PORT or ipc://PATH. Port 0 is a free port. With a pattern, as in \
            'document/*=tcp://127.0.0.1:0', only the stores that it covers are published there, and a key may \
            subscribe there if it may observe those.
            """)
    static let ask = Option<Endpoint?>(
        "--ask", parse: .endpoint,
        summary: "Where requests come: tcp://HOST:PORT or ipc://PATH. Port 0 is a free port.")
    static let authorized = Option<String?>(
        "--authorized", valueName: "FILE", parse: .text,
        summary: """
            Who may use the gateway, and for what: a name, a public key and rights on each line. Needs --curve-secret. \
            On SIGHUP the gateway reads the file again.
            """)
    static let insecure = Flag(
        "--insecure",
        summary: """
            Let everybody who can reach the addresses use the gateway, and encrypt nothing. Without keys, addresses \
            that are not on the loopback interface need this option.
            """)

    static let all: [any ParameterKey] = [publish, ask, authorized, insecure] + WorkerOptions.all
}
