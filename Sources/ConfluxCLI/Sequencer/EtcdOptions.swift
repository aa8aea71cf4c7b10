import ConfluxArguments
import ConfluxEtcd
import ConfluxLog
import ConfluxNode
import ConfluxSequencer
import ConfluxWorker
import Dispatch

/// The options of a log on etcd.
enum EtcdOptions {
    static let log = Option<EtcdAddress?>(
        "--log",
        parse: ValueParser(
            "URL",
            expecting:
                "the address of a log on etcd; write etcd://HOST:PORT,HOST:PORT/PREFIX, or etcds:// "
                + "for encrypted connections"
        ) { EtcdAddress($0) },
        summary: """
            Keep the log on etcd, below a prefix that no other program uses: members, separated by commas, \
            and the prefix. With etcds:// connections are encrypted. \
            As the log grows, etcd discards older revisions of all its keys.
            """)
    private static let authority = Option<String?>(
        "--log-ca", valueName: "FILE", parse: .text,
        summary: """
            The certificate authorities (PEM) that vouch for etcd's members. If omitted, those \
            that the system trusts. This option and the next two need etcds://.
            """)
    private static let certificate = Option<String?>(
        "--log-cert", valueName: "FILE", parse: .text,
        summary: "The sequencer's own certificate (PEM), where etcd asks for one.")
    private static let key = Option<String?>(
        "--log-key", valueName: "FILE", parse: .text,
        summary: "The secret key of that certificate (PEM); if omitted, it is in the same file.")
    private static let user = Option<String?>(
        "--log-user", valueName: "FILE", parse: .text,
        summary: "A file with one line, USER:PASSWORD, where etcd's authentication is enabled.")
    static let limit = Option<Int?>(
        "--log-limit", valueName: "SIZE", parse: .byteSize(in: 1 << 20...1 << 44),
        summary: """
            The most bytes that the log takes. Near it, actions wait until older entries are discarded. \
            If omitted: with --data three quarters of the file system, 64 GiB at most; with --memory 1 GiB; on etcd \
            2 GiB. On etcd it is the value of --quota-backend-bytes; etcd 3.6 reports its own, and the lower one counts.
            """)

    static let advertise = Option<String?>(
        "--advertise", valueName: "ADDRESS", parse: .text,
        summary: """
            The address at which nodes reach this sequencer. The log's other sequencers redirect \
            nodes to it. If omitted, the address of --bind, which then can't be a wildcard.
            """)

    /// The options for reaching etcd, and for its space.
    static let connection: [any ParameterKey] = [authority, certificate, key, user, limit]
    static let parameters = connection + [advertise]

    /// The storage for a sequencer whose log is on etcd.
    static func storage(
        at address: EtcdAddress, _ environment: CommandEnvironment
    ) throws(CommandFailure) -> SequencerConfiguration.Storage {
        let settings = try settings(at: address, environment)
        return .shared { () throws(LogError) in try EtcdLog(settings) }
    }

    /// How long an ending command waits for etcd: long enough for what is under way if etcd works, and short enough to
    /// end in time if it does not.
    private static let endingPatience = Duration.seconds(2)

    /// The settings of a log on etcd. If the process has to end, calls to etcd do so soon.
    static func settings(
        at address: EtcdAddress, _ environment: CommandEnvironment
    ) throws(CommandFailure) -> EtcdLogSettings {
        let arguments = environment.arguments
        var settings = EtcdLogSettings(address: address)
        settings.security = EtcdSecurity(
            authorityFile: arguments[authority], certificateFile: arguments[certificate],
            keyFile: arguments[key])
        guard address.isSecure || settings.security == EtcdSecurity() else {
            throw CommandFailure(
                .usage, code: "usage",
                "--log-ca, --log-cert and --log-key encrypt connections: begin the address with etcds://."
            )
        }
        if let bytes = arguments[limit] { settings.quotaBytes = bytes }
        do throws(EtcdFileError) {
            try settings.security.checkFiles()
            if let file = arguments[user] { settings.credentials = try EtcdCredentials(file: file) }
        } catch {
            throw CommandFailure(.noInput, code: "credentials", error.description)
        }
        do throws(LogError) {
            try settings.validate()
        } catch {
            throw CommandFailure(.usage, code: "usage", error.message)
        }
        let calls = EtcdCalls()
        settings.calls = calls
        environment.interruption.whenFired {
            DispatchQueue.global().asyncAfter(
                deadline: .now() + Self.endingPatience.dispatchInterval
            ) { calls.end() }
        }
        return settings
    }
}
