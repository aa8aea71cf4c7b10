import ConfluxArguments
import ConfluxNode
import ConfluxVocabulary

/// The options of every worker: the tool's and your own.
package enum WorkerOptions {
    /// The sequencer's address.
    package static let connect = Option(
        "--connect", valueName: "ADDRESS", default: "tcp://127.0.0.1:7400", parse: .text,
        summary: """
            Where the sequencer listens: host:port, tcp://host:port or ipc:///path. If there are standbys, give \
            several addresses, separated by commas.
            """)
    /// Where the feed comes from.
    package static let feed = Option<String?>(
        "--feed", valueName: "ADDRESS", parse: .text,
        summary: """
            A relay that the feed comes from, or several, separated by commas. If omitted, those that the \
            sequencer announces. The sequencer's own feed is used if no relay can be reached.
            """)
    /// How long to wait for the sequencer.
    package static let timeout = Option(
        "--timeout", default: .seconds(5),
        parse: .duration(in: .milliseconds(1) ... .seconds(86_400)),
        summary: "How long to wait for the sequencer: for a session, and then for each answer.")
    /// The process's key.
    package static let secret = Option<String?>(
        "--curve-secret", valueName: "FILE", parse: .text,
        summary: "This process's secret key, as conflux keygen writes it. Needs --server-key.")
    /// The sequencer's key.
    package static let serverKey = Option<String?>(
        "--server-key", valueName: "FILE|KEY", parse: .text,
        summary: """
            The sequencer's public key: the file with it, or its 40 characters. Needs --curve-secret.
            """)
    /// The node's name.
    package static let name = Option<Name?>(
        "--name", parse: .nodeName,
        summary: "The node's name, which no other live node may have.")
    /// The stores to host.
    package static let stores = Option<[StoreName]>(
        repeated: "--store", parse: .storeName,
        summary: """
            A store to host: a state's name, or state/instance. If omitted, the shared store \
            of every state that this worker knows.
            """)
    /// The most bytes of an action.
    package static let payloadMax = Option(
        "--payload-max", default: 1 << 20, parse: .byteSize(in: 1...32 << 20),
        summary: "The largest size of one encoded action. The sequencer has a limit of its own.")
    /// When the schema versions of the stores rise.
    package static let upgrades = Option<UpgradeChoice>(
        "--upgrades", default: .understood, parse: .choice,
        summary: """
            When the schema version of a store rises. understood: as soon as every live host \
            understands the newer version. told: when you say conflux upgrade, and they do. never: \
            not while this worker hosts the store.
            """)
    /// The file in which stores record what they apply.
    package static let journal = Option<String?>(
        "--journal", valueName: "FILE", parse: .text,
        summary: """
            The crash journal, a file for this worker only. With it the worker recognises an \
            entry that it died of twice: it stops that store, and serves the others.
            """)
    /// JSON instead of text.
    package static let json = Flag(
        "--json", summary: "Print one JSON value per line, with sorted keys.")

    /// The options of a command that connects to the sequencer.
    package static let connecting: [any ParameterKey] = [connect, secret, serverKey, timeout, json]

    /// All options.
    package static let all: [any ParameterKey] = [
        connect, feed, secret, serverKey, name, stores, upgrades, journal, timeout, payloadMax,
        MonitoringOptions.http, MonitoringOptions.httpToken, EventLevel.option, json,
    ]

    /// The relays that the command line names; none for a command that follows no feed.
    package static func feeds(_ arguments: Invocation) -> [String] {
        guard arguments.describes(feed), let text = arguments[feed] else { return [] }
        return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    /// Reads the keys that the command line names.
    ///
    /// - Returns: nil if it names none.
    /// - Throws: The reason if a key can't be used.
    package static func keys(_ arguments: Invocation) throws(CommandFailure) -> NodeKeys? {
        switch (arguments[secret], arguments[serverKey]) {
        case (nil, nil): return nil
        case (let secret?, let server?):
            return try failing { () throws(KeyFileError) in
                let own = try KeyFile.readPair(secret)
                return NodeKeys(own: own, sequencer: try KeyFile.publicKey(server))
            }
        default:
            throw CommandFailure(
                .usage, code: "usage",
                "--curve-secret and --server-key go together: who this process is, and who the "
                    + "sequencer is.")
        }
    }
}

/// The words of the command line for when a store's schema version rises.
package enum UpgradeChoice: String, Sendable, CaseIterable {
    /// As soon as every live host understands it.
    case understood
    /// When somebody says so, too.
    case told
    /// Not because of this node.
    case never

    /// The setting of a node.
    package var policy: UpgradePolicy {
        switch self {
        case .understood: .whenAllUnderstand
        case .told: .whenTold
        case .never: .never
        }
    }
}

extension ValueParser where Value == Name {
    /// The name of a node.
    package static var nodeName: ValueParser<Name> {
        ValueParser("NAME", expecting: "a name: 1 to 64 characters of a-z 0-9 . _ -") { Name($0) }
    }
}

extension ValueParser where Value == StoreName {
    /// The name of a store.
    package static var storeName: ValueParser<StoreName> {
        ValueParser(
            "STORE",
            expecting: "a store: state or state/instance, each 1 to 64 characters of a-z 0-9 . _ -"
        ) { StoreName($0) }.completing(.asked("stores"))
    }
}

extension ValueParser where Value == Target {
    /// The target of a dispatch.
    package static var target: ValueParser<Target> {
        ValueParser(
            "TARGET",
            expecting:
                "a target: state, state/instance or state/*, with names of 1 to 64 characters of a-z 0-9 . _ -"
        ) { Target($0) }.completing(.asked("stores"))
    }
}
