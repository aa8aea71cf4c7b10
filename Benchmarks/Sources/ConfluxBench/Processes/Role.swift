/// What one process of a workload does. The program starts itself anew for each, as production
/// has a process for each, and hands the role over as JSON.
enum Role: Codable, Sendable {
    /// A sequencer with its log in a folder, or in memory; with keys, if there are any.
    case sequencer(folder: String?, keys: KeyRing? = nil)
    /// A node that dispatches actions one by one.
    case producer(
        at: Place, producer: Int, count: Int, form: OpaqueForm = .record,
        payloadBytes: Int = Role.payloadBytes)
    /// A node whose store checks the order of so many actions.
    case replica(at: Place, count: Int, form: OpaqueForm = .record)
    /// A node with one action in flight.
    case roundTrips(at: Place, count: Int)
    /// A node with so many actions in flight at a time.
    case receipts(at: Place, count: Int, inFlight: Int)
    /// So many nodes that dispatch one action each, and stay.
    case visitors(at: Place, count: Int)
    /// The same with typed actions.
    case typedProducer(at: Place, count: Int, coding: TypedCoding)
    case typedReplica(at: Place, count: Int, coding: TypedCoding)
    /// So many threads that are busy with nothing.
    case busy(threads: Int)
    /// So many observers that read the log from its beginning, again and again.
    case readers(address: String, count: Int)
    /// So many connections that never say all of what they are.
    case loris(addresses: [String], count: Int)
    /// So many connections of authorised keys that say nothing more; with a feed: that subscribe.
    case idle(places: [Place], feed: String?, count: Int)
    /// So many connections of one key that say as fast as they can whatever costs something.
    case flood(at: Place, feed: String, count: Int)
    /// A sequencer that is ordered about: see ``Order``.
    case keeper(folder: String, KeeperSettings)
    /// A node that is ordered about. It connects when it is first told to open something.
    case ledger(address: String, TableKind = .dictionary)
    /// Whoever listens to a feed, and tells how long it was silent.
    case listener(feed: String)
    /// Decoding and applying, without anything else.
    case decoder
    /// The same hops over plain libzmq; the log at a path, or none.
    case partnerSequencer(path: String?, zeroedBytes: Int, subscribers: Int)
    case partnerProducer(
        input: String, producer: Int, count: Int, frameActions: Int = Role.frameActions)
    case partnerReplica(output: String, count: Int)
    case partnerRoundTrips(input: String, output: String, count: Int)
    /// The same workload over a server of others.
    case peerProducer(at: PeerPlace, producer: Int, count: Int, entryActions: Int)
    case peerReplica(at: PeerPlace, count: Int)
    case peerRoundTrips(at: PeerPlace, count: Int)

    /// What precedes a role on the command line.
    static let option = "--role"
    /// How many actions a frame of the partner's has at most, unless another number is named.
    static let frameActions = 64
    /// The bytes of an action, unless another number is named.
    static let payloadBytes = 64
    /// Round trips that are made and not counted.
    static let warmUpCount = 500
}

/// What a process tells the one that started it, as one JSON value a line.
enum Report: Codable, Sendable {
    /// A sequencer is bound to these addresses.
    case listening([String])
    /// All is connected; the process begins when it is told to.
    case ready
    /// All actions were dispatched, and had their outcomes; nanoseconds of the monotonic clock.
    case produced(start: UInt64, dispatched: UInt64, settled: UInt64)
    /// All actions were applied.
    case replicated(Sighting)
    /// Processor time so far, in nanoseconds.
    case usage(UInt64)
    /// Nanoseconds from each dispatch until it was applied, and until its receipt was there.
    case roundTrips(applied: [UInt64], receipt: [UInt64])
    /// What was ordered took so many nanoseconds.
    case took(UInt64)
    /// Each of what was ordered took so many nanoseconds.
    case times([UInt64])
    /// What a sequencer has kept.
    case kept(Kept)
    /// The bytes of memory that the process has now, and had at most.
    case memory(now: UInt64, most: UInt64)
    /// The process can't go on.
    case failed(String)
}

/// What a replica saw.
struct Sighting: Codable, Sendable {
    var count: UInt64
    /// A hash over producers and indices in their order.
    var hash: UInt64
    /// How often an action did not follow its producer's last one.
    var disorders: UInt64
    /// When the last action was applied, in nanoseconds of the monotonic clock.
    var end: UInt64
}
