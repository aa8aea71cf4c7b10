import Foundation

#if PEERS
    import CPeers
#endif

/// A third-party server that keeps a log and delivers it to many clients in one order.
enum PeerKind: String, Codable, Sendable, CaseIterable {
    case redis
    case valkey
    /// NATS as it is: it syncs its files every two minutes.
    case nats
    /// NATS that syncs each write.
    case syncedNATS

    /// The name of the program.
    var program: String {
        switch self {
        case .redis: "redis-server"
        case .valkey: "valkey-server"
        case .nats, .syncedNATS: "nats-server"
        }
    }

    /// The name of the log, and when it is synced.
    var log: String {
        switch self {
        case .redis: "Redis Streams, fsync always"
        case .valkey: "Valkey Streams, fsync always"
        case .nats: "NATS JetStream in files, synced every 2 minutes"
        case .syncedNATS: "NATS JetStream in files, sync_interval always"
        }
    }

    /// A short name, for pictures.
    var shortName: String {
        switch self {
        case .redis: "Redis Streams (fsync)"
        case .valkey: "Valkey Streams (fsync)"
        case .nats: "NATS JetStream (2 min sync)"
        case .syncedNATS: "NATS JetStream (sync always)"
        }
    }

    /// The arguments with which the server keeps its log. Writes the server's file of settings, if it has one.
    func arguments(port: Int, folder: String) throws -> [String] {
        switch self {
        case .redis, .valkey:
            // Every answer waits for fsync.
            return [
                "--port", "\(port)", "--bind", "127.0.0.1", "--dir", folder, "--save", "",
                "--appendonly", "yes", "--appendfsync", "always", "--loglevel", "warning",
            ]
        case .nats: return ["-a", "127.0.0.1", "-p", "\(port)", "-js", "-sd", folder]
        case .syncedNATS:
            let file = "\(folder)/nats.conf"
            try Data("jetstream { store_dir: \"\(folder)\", sync_interval: always }\n".utf8)
                .write(to: URL(fileURLWithPath: file))
            return ["-a", "127.0.0.1", "-p", "\(port)", "-c", file]
        }
    }
}

/// The place of a third-party server.
struct PeerPlace: Codable, Sendable {
    let kind: PeerKind
    let port: Int
}

/// The processes that use a third-party server, by its own client library.
enum PeerRoles {
    /// Whether this program contains these roles: `script/bench --peers` builds it so.
    static let arePlayed: Bool = {
        #if PEERS
            true
        #else
            false
        #endif
    }()

    #if PEERS
        private static func check(_ failure: UnsafePointer<CChar>?) throws {
            if let failure { throw BenchError(String(cString: failure)) }
        }

        private static func kind(_ place: PeerPlace) -> peer_kind {
            switch place.kind {
            case .redis, .valkey: peer_redis
            case .nats, .syncedNATS: peer_nats
            }
        }

        /// Waits until a server answers, and makes the stream.
        static func prepare(_ place: PeerPlace) throws {
            try check(peer_prepare(kind(place), Int32(place.port)))
        }

        private static func withClient(
            of place: PeerPlace, _ body: (OpaquePointer) throws -> Void
        ) throws {
            var client: OpaquePointer?
            try check(peer_open(kind(place), Int32(place.port), &client))
            guard let client else { throw BenchError("no client was made") }
            defer { peer_close(client) }
            try body(client)
        }

        static func producer(
            at place: PeerPlace, producer: Int, count: Int, entryActions: Int
        ) throws {
            try withClient(of: place) { client in
                Control.awaitStart()
                let start = monotonicNanoseconds()
                try check(
                    peer_produce(client, UInt64(producer), UInt64(count), UInt64(entryActions)))
                let end = monotonicNanoseconds()
                Control.tell(.produced(start: start, dispatched: end, settled: end))
            }
        }

        static func replica(at place: PeerPlace, count: Int) throws {
            try withClient(of: place) { client in
                Control.tell(.ready)
                var order = partner_order()
                try check(peer_receive(client, UInt64(count), &order))
                Control.tell(
                    .replicated(
                        Sighting(
                            count: order.count, hash: order.hash, disorders: order.disorders,
                            end: monotonicNanoseconds())))
            }
        }

        static func roundTrips(at place: PeerPlace, count: Int) throws {
            try withClient(of: place) { client in
                Control.awaitStart()
                var times = [UInt64](repeating: 0, count: Role.warmUpCount + count)
                try check(peer_round_trips(client, UInt64(times.count), &times))
                times.removeFirst(Role.warmUpCount)
                Control.tell(.roundTrips(applied: times, receipt: times))
            }
        }
    #else
        private static let absent = BenchError("built without peers; run script/bench --peers")

        static func prepare(_ place: PeerPlace) throws { throw absent }
        static func producer(
            at place: PeerPlace, producer: Int, count: Int, entryActions: Int
        ) throws { throw absent }
        static func replica(at place: PeerPlace, count: Int) throws { throw absent }
        static func roundTrips(at place: PeerPlace, count: Int) throws { throw absent }
    #endif
}
