import Foundation

/// What is measured, and how.
struct Settings {
    enum Workload: String, CaseIterable {
        case stream
        case typed
        case stopped
        case latency
        case transactions
        case timers
        case readers
        case neighbours
        case hostile
        case relays
        case gateway
        case keys
        case ipc
        case log
        case local
        case read
        case join
        case replay
        case digest
        case stores
        case large
        case start
        case peers
        case etcd
        case shared
        case growth
    }

    /// All workloads, except for those that need other programs or write files.
    var workloads = Workload.allCases.filter {
        ![.relays, .gateway, .peers, .etcd, .shared, .growth].contains($0)
    }
    var rounds = 3
    var isFull = false
    var isJSON = false
    /// Whether partners are left out.
    var isAlone = false
    /// The number of actions in a stream, if it was given.
    var actions: Int?
    var folder = FileManager.default.temporaryDirectory

    static let usage = """
        usage: conflux-bench [workload ...] [options]

        Measures Conflux in alternating rounds on this machine. All workloads unless some are named:

          stream            actions dispatched as fast as possible, beside plain libzmq
          typed             a stream of typed actions, beside Foundation's JSON alone
          stopped           a stream while one of three replicas is stopped, beside all running
          latency           one action in flight, beside plain libzmq
          transactions      one transaction, or one action with a condition, in flight, beside a plain action
          timers            how late timers fire, and an idle sequencer with 100,000 of them, beside one with none
          readers           one action in flight while 64 observers read the log, beside none
          neighbours        one action in flight while another store of the node is in trouble
          hostile           one action in flight while peers do what costs most, beside none
          relays            one action in flight until the last of 1 to 1,000 subscribers has it, through relays,
                            beside none; not among all workloads
          keys              a stream, and one action in flight, with keys, beside without
          ipc               the same over Unix sockets, beside TCP
          log               commits appended to a log on disk, beside plain synced writes
          local             dispatch without a node
          read              a model's value by key path
          join              a new node opens a store with a long history
          replay            a new node applies the whole log, and a node makes a state of the past from it
          digest            applying with and without digests
          stores            many stores in one log
          large             a large state: what waits while it is digested and saved
          start             a sequencer starts with a long history
          gateway           changes to a subscriber of a gateway, beside plain PUB and SUB; dispatch by DEALER; a
                            request by REQ, beside a node's own action; not among all workloads
          etcd              appends to a log on etcd, beside gRPC in C++, if the program was built by
                            `script/bench etcd`; not among all workloads
          shared            a stream, one action in flight, and a failover, with the log on etcd of three members,
                            beside a log on one disk; not among all workloads
          growth            curves over replicas, producers, payloads, log, state, stores, sessions: a workload only
                            if it is named
          --peers           stream and latency beside Redis Streams, Valkey, NATS JetStream and plain libzmq in one
                            run: a workload, too, if the program was built by `script/bench --peers`

          --full            five rounds or more, more actions, and every shape
          --rounds NUMBER   how many rounds (3; with --full 5)
          --folder PATH     where the logs are kept meanwhile; a disk, for figures with fsync
          --json            one JSON value a line
          --actions NUMBER  how many actions a stream has (200,000; with --full 500,000)
          --alone           without the partners, for a profile
          --help            this text

        """

    /// - Throws: An error that says what is wrong with the words.
    init(_ words: [String]) throws {
        var named: [Workload] = []
        var rounds: Int?
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "--full": isFull = true
            case "--json": isJSON = true
            case "--alone": isAlone = true
            case "--peers": named.append(.peers)
            case "--rounds":
                guard let number = rest.popFirst().flatMap({ Int($0) }), number > 0 else {
                    throw BenchError("--rounds needs a number, 1 or more")
                }
                rounds = number
            case "--actions":
                guard let number = rest.popFirst().flatMap({ Int($0) }), number > 0 else {
                    throw BenchError("--actions needs a number, 1 or more")
                }
                actions = number
            case "--folder":
                guard let path = rest.popFirst() else { throw BenchError("--folder needs a path") }
                folder = URL(fileURLWithPath: path)
            default:
                guard let workload = Workload(rawValue: word), workload != .peers else {
                    throw BenchError("there is no workload or option \(word)")
                }
                named.append(workload)
            }
        }
        if !named.isEmpty { workloads = named }
        self.rounds = rounds ?? (isFull ? 5 : 3)
    }

    /// Reports the progress on the standard error.
    func note(_ text: String) {
        FileHandle.standardError.write(Data("bench: \(text)\n".utf8))
    }

    /// Measures, and delivers each row as soon as it is known.
    func run(_ deliver: ([Row]) throws -> Void) throws {
        for workload in workloads {
            switch workload {
            case .stream:
                for stream in streams { try deliver(stream.measure(self)) }
            case .typed:
                try deliver(TypedWorkload(count: streamCount).measure(self))
            case .latency:
                for latency in latencies { try deliver(latency.measure(self)) }
            case .transactions:
                for durability in Durability.allCases {
                    try deliver(
                        TransactionWorkload(
                            durability: durability, count: isFull ? 5_000 : 1_500
                        ).measure(self))
                }
            case .timers:
                try deliver(TimerWorkload(count: 1_000, pendingCount: 100_000).measure(self))
            case .stopped: try deliver(StoppedWorkload(count: streamCount).measure(self))
            case .readers:
                try deliver(
                    ReadersWorkload(
                        readers: 64, history: isFull ? 1_000_000 : 300_000,
                        count: isFull ? 5_000 : 1_500
                    ).measure(self))
            case .neighbours:
                try deliver(NeighboursWorkload(bytes: (isFull ? 256 : 64) << 20).measure(self))
            case .hostile:
                try deliver(HostileWorkload(count: isFull ? 5_000 : 1_500).measure(self))
            case .gateway:
                try deliver(
                    GatewayWorkload(
                        streamCount: streamCount, latencyCount: isFull ? 5_000 : 1_500
                    ).measure(self))
            case .relays: try deliver(RelaysWorkload(count: isFull ? 1_000 : 300).measure(self))
            case .keys, .ipc:
                try deliver(
                    ConnectionWorkload(
                        kind: workload == .keys ? .keys : .ipc,
                        streamCount: isFull ? 500_000 : 200_000,
                        latencyCount: isFull ? 5_000 : 1_500
                    ).measure(self))
            case .log:
                for bytes in [128, 64 << 10] {
                    try deliver(
                        LogWorkload(commitBytes: bytes, count: isFull ? 20_000 : 5_000)
                            .measure(self))
                }
            case .local:
                try deliver(LocalWorkload(count: isFull ? 1_000_000 : 200_000).measure(self))
            case .read:
                try deliver(ReadWorkload(count: isFull ? 10_000_000 : 2_000_000).measure(self))
            case .join:
                try deliver(JoinWorkload(count: isFull ? 2_000_000 : 400_000).measure(self))
            case .replay:
                try deliver(ReplayWorkload(count: isFull ? 1_000_000 : 200_000).measure(self))
            case .digest:
                try deliver(DigestWorkload(count: isFull ? 1_000_000 : 300_000).measure(self))
            case .stores:
                try deliver(StoresWorkload(count: isFull ? 10_000 : 2_000).measure(self))
            case .large:
                for table in [TableKind.dictionary, .tree] {
                    try deliver(
                        LargeWorkload(
                            stateBytes: isFull ? 100_000_000 : 25_000_000, table: table
                        ).measure(self))
                }
            case .start:
                try deliver(StartWorkload(count: isFull ? 2_000_000 : 400_000).measure(self))
            case .growth:
                try GrowthWorkload(isFull: isFull).measure(self, deliver)
            case .peers:
                try PeersWorkload(
                    streamCount: streamCount, latencyCount: isFull ? 5_000 : 1_500
                ).measure(self, deliver)
            case .shared:
                try deliver(
                    SharedWorkload(
                        streamCount: streamCount, latencyCount: isFull ? 5_000 : 1_500
                    ).measure(self))
            case .etcd: try deliver(EtcdWorkload(count: isFull ? 5_000 : 1_600).measure(self))
            }
        }
    }

    private var streamCount: Int { actions ?? (isFull ? 500_000 : 200_000) }

    private var streams: [StreamWorkload] {
        let shapes = [(1, 1), (1, 3), (4, 3)]
        return Durability.allCases.flatMap { durability in
            shapes.filter { isFull || (durability == .fsync && $0 != (1, 3)) }.map {
                StreamWorkload(
                    producers: $0, replicas: $1, durability: durability,
                    count: streamCount)
            }
        } + [
            StreamWorkload(
                producers: 4, replicas: 3, durability: .fsync, count: streamCount, form: .data)
        ]
    }

    private var latencies: [LatencyWorkload] {
        let count = isFull ? 5_000 : 1_500
        return [
            LatencyWorkload(durability: .memory, zeroedBytes: 0, count: count),
            LatencyWorkload(durability: .fsync, zeroedBytes: 16 << 20, count: count),
        ]
            + (isFull
                ? [LatencyWorkload(durability: .fsync, zeroedBytes: 0, count: count)] : [])
    }

    /// The sides to measure in a round. They change places from round to round.
    func sides(of round: Int) -> [Side] {
        if isAlone { return [.conflux] }
        return round.isMultiple(of: 2) ? [.conflux, .partner] : [.partner, .conflux]
    }
}
