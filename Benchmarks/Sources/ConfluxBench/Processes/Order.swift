/// What a process of the workloads with a long history is told to do, in one line of JSON. It does
/// one after the other, and tells what came of each.
enum Order: Codable, Sendable {
    /// Makes a node, connects it and opens a ledger, or another one; tells how long all of it took.
    case open(String)
    /// Opens ledgers by number; tells how long each took.
    case openMany(first: Int, count: Int)
    /// Ends the lives of ledgers by number; tells how long each took.
    case drop(first: Int, count: Int)
    /// Makes a ledger as large as it is to be, by few actions.
    case fill(String, rows: Int)
    /// Sets rows, one after the other and from the first one again; tells how long it took until the
    /// last one had its receipt.
    case write(String, first: Int, count: Int, rows: Int)
    /// Sets one row to a text of so many bytes, again and again; the same.
    case append(String, count: Int, bytes: Int)
    /// Opens a ledger on an executor that can be stopped.
    case openGated(String)
    /// Stops the executors of these ledgers for good.
    case stopGated
    /// Waits until everything that was committed is applied here.
    case barrier
    /// Has one action in flight, so often; tells how long each took until its receipt.
    case roundTrips(String, count: Int, rows: Int)
    /// The same until the probe is ended, which tells it.
    case beginProbe(String, rows: Int)
    case endProbe
    /// Writes a ledger's canonical encoding to a file.
    case export(String, path: String)
    /// Leaves.
    case close
    /// Tells what memory the process uses.
    case weigh
    /// Tells what the sequencer has kept.
    case count
    /// Tells the times for which a feed was silent since this was ordered last, and begins anew.
    case silences
    /// Reads a file and decodes the ledger that it holds, with the package's decoder or Foundation's.
    case decodeLedger(path: String, with: DecoderKind, TableKind = .dictionary)
    /// Decodes actions out of memory and applies them to a ledger.
    case decodeActions(count: Int, rows: Int, with: DecoderKind)
}

enum DecoderKind: String, Codable, Sendable {
    case canonical
    case foundation
}

/// How a sequencer of these workloads differs from one with default settings.
struct KeeperSettings: Codable, Sendable {
    /// How many bytes of log are between two digest points at least.
    var digestBytesMin: UInt64?
    /// How many bytes of log are between two snapshots at least.
    var snapshotBytesMin: UInt64?
    /// How many bytes of log are between two checkpoints.
    var checkpointBytes: Int?
    /// Whether nothing of the log is ever given up.
    var keepsAll = false

    static let withoutDigests = KeeperSettings(digestBytesMin: .max, keepsAll: true)
    static let withoutSnapshots = KeeperSettings(snapshotBytesMin: .max, keepsAll: true)
}

/// What a sequencer has kept since it was started.
struct Kept: Codable, Sendable {
    /// From its start until nodes are heard, in nanoseconds.
    var started: UInt64 = 0
    /// The entries that it read to start.
    var read: UInt64 = 0
    var snapshots = 0
    /// Of the newest one.
    var snapshotAt: UInt64 = 0
    var snapshotBytes: UInt64 = 0
    var checkpoints = 0
    /// The size of the newest one.
    var checkpointBytes = 0
    /// What went wrong.
    var failures: [String] = []
}
