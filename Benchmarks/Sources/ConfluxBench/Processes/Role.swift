/// The role of one process of a workload. The program starts itself once for each role, since production
/// also has separate processes, and passes the role as JSON.
enum Role: Codable, Sendable {
    /// A sequencer with its log in a folder or in memory, and with keys if there are any.
    case sequencer(bind: String, folder: String?, keys: KeyRing? = nil)
    /// A sequencer with its log on etcd, or a standby.
    case sharedSequencer(log: String)
    /// A node that dispatches an action at the moment when it is told to.
    case failover(at: Place)
    /// A node that dispatches actions one by one.
    case producer(
        at: Place, producer: Int, count: Int, form: OpaqueForm = .record,
        payloadBytes: Int = Role.payloadBytes)
    /// A node whose store checks the order of so many actions.
    case replica(at: Place, count: Int, form: OpaqueForm = .record)
    /// A node with one action in flight.
    case roundTrips(at: Place, count: Int)
    /// A node with an action, an action with a condition, or a transaction in flight, in turn.
    case transactions(at: Place, count: Int)
    /// A node that sets timers which fire soon, spread over two seconds or at one time.
    case timers(at: Place, count: Int, isBurst: Bool)
    /// A node that sets timers which fire hours later, and leaves.
    case pendingTimers(at: Place, count: Int)
    /// A node with several actions in flight at a time.
    case receipts(at: Place, count: Int, inFlight: Int)
    /// A node with one action in flight, and so many subscribers of these feeds.
    case audience(at: Place, feeds: [String], subscribers: Int, count: Int)
    /// Nodes that dispatch one action each, and stay.
    case visitors(at: Place, count: Int)
    /// The same with typed actions.
    case typedProducer(at: Place, count: Int, coding: TypedCoding)
    case typedReplica(at: Place, count: Int, coding: TypedCoding)
    /// Threads that are busy with useless work.
    case busy(threads: Int)
    /// Observers that read the log from its first entry, again and again.
    case readers(address: String, count: Int)
    /// Connections that never complete their handshake.
    case loris(addresses: [String], count: Int)
    /// Connections of authorised keys that send nothing more, or, with a feed, that subscribe.
    case idle(places: [Place], feed: String?, count: Int)
    /// Connections of one key that send expensive messages as fast as they can.
    case flood(at: Place, feed: String, count: Int)
    /// A sequencer that carries out orders: see ``Order``.
    case keeper(folder: String, KeeperSettings)
    /// A node that carries out orders. It connects when it is first told to open something.
    case ledger(address: String, TableKind = .dictionary)
    /// Listens to a feed, and reports how long it was silent.
    case listener(feed: String)
    /// Decodes and applies, and does nothing else.
    case decoder
    /// A node that increments a counter, for the subscribers of a gateway.
    case counter(at: Place, count: Int, isByHand: Bool)
    /// A plain publisher, with which the gateway is compared.
    case publisher(count: Int)
    /// A plain subscriber of either.
    case follower(address: String, topic: String, isGateway: Bool, count: Int)
    /// A plain client that increments the counter by a gateway.
    case asker(address: String, count: Int, window: Int)
    /// The same hops over plain libzmq, with the log at a path, or without a log.
    case partnerSequencer(path: String?, zeroedBytes: Int, subscribers: Int)
    case partnerProducer(
        input: String, producer: Int, count: Int, frameActions: Int = Role.frameActions)
    case partnerReplica(output: String, count: Int)
    case partnerRoundTrips(input: String, output: String, count: Int)
    /// The same workload with a third-party server.
    case peerProducer(at: PeerPlace, producer: Int, count: Int, entryActions: Int)
    case peerReplica(at: PeerPlace, count: Int)
    case peerRoundTrips(at: PeerPlace, count: Int)

    /// The word before a role on the command line.
    static let option = "--role"
    /// The largest number of actions in a frame of the partner, unless another one is given.
    static let frameActions = 64
    /// The number of bytes in an action, unless another one is given.
    static let payloadBytes = 64
    /// The number of round trips that are made first, and not counted.
    static let warmUpCount = 500
}

/// A report of a process to the one that started it, as one JSON value in each line.
enum Report: Codable, Sendable {
    /// A sequencer is bound to these addresses.
    case listening([String])
    /// Everything is connected. The process begins when it is told to.
    case ready
    /// All actions were dispatched, and have their outcomes. The times are nanoseconds of the monotonic clock.
    case produced(start: UInt64, dispatched: UInt64, settled: UInt64)
    /// All actions were applied.
    case replicated(Sighting)
    /// The processor time so far, in nanoseconds.
    case usage(UInt64)
    /// The nanoseconds from each dispatch until the action was applied, and until its receipt was there.
    case roundTrips(applied: [UInt64], receipt: [UInt64])
    /// An order took this many nanoseconds.
    case took(UInt64)
    /// The parts of an order took these numbers of nanoseconds.
    case times([UInt64])
    /// What a sequencer has kept.
    case kept(Kept)
    /// The bytes of memory that the process uses now, and the most that it has used.
    case memory(now: UInt64, most: UInt64)
    /// The process can't continue.
    case failed(String)
}

/// What a replica saw.
struct Sighting: Codable, Sendable {
    var count: UInt64
    /// A hash of the producers and indices, in order.
    var hash: UInt64
    /// How often an action did not follow its producer's previous one.
    var disorders: UInt64
    /// The time at which the last action was applied, in nanoseconds of the monotonic clock.
    var end: UInt64
}
