/// An order to a process of the workloads with a long history, as one line of JSON. The process carries out
/// one order after the other, and reports the result of each.
enum Order: Codable, Sendable {
    /// Opens a ledger, after connecting a node if there is none. Reports how long all of it took.
    case open(String)
    /// Opens ledgers by number. Reports how long each took.
    case openMany(first: Int, count: Int)
    /// Ends the lives of ledgers by number. Reports how long each took.
    case drop(first: Int, count: Int)
    /// Makes a ledger as large as it should be, with few actions.
    case fill(String, rows: Int)
    /// Sets rows in turn, one after the other. Reports how long it took until the last action had its
    /// receipt.
    case write(String, first: Int, count: Int, rows: Int)
    /// Sets one row again and again to a text of this size. Reports the same.
    case append(String, count: Int, bytes: Int)
    /// Opens a ledger on an executor that can be stopped.
    case openGated(String)
    /// Stops the executors of these ledgers permanently.
    case stopGated
    /// Waits until everything that was committed is applied in this process.
    case barrier
    /// Dispatches actions, one in flight at a time. Reports how long each took until its receipt.
    case roundTrips(String, count: Int, rows: Int)
    /// The same in the background, until `endProbe`, which reports the times.
    case beginProbe(String, rows: Int)
    case endProbe
    /// Asks for the state that a ledger has now, by the number of the newest entry. Reports how long that took.
    case past(String)
    /// Writes a ledger's canonical encoding to a file.
    case export(String, path: String)
    /// Closes the node.
    case close
    /// Reports the memory that the process uses.
    case weigh
    /// Reports what the sequencer has kept.
    case count
    /// Reports the times between the messages of a feed since the last such order.
    case silences
    /// Reads a file and decodes its ledger, with the package's decoder or Foundation's.
    case decodeLedger(path: String, with: DecoderKind, TableKind = .dictionary)
    /// Decodes actions from memory, and applies them to a ledger.
    case decodeActions(count: Int, rows: Int, with: DecoderKind)
}

enum DecoderKind: String, Codable, Sendable {
    case canonical
    case foundation
}

/// How a sequencer of these workloads differs from one with default settings.
struct KeeperSettings: Codable, Sendable {
    /// The least number of bytes of log between two digest points.
    var digestBytesMin: UInt64?
    /// The least number of bytes of log between two snapshots.
    var snapshotBytesMin: UInt64?
    /// The number of bytes of log between two checkpoints.
    var checkpointBytes: Int?
    /// Whether the log never discards any entry.
    var keepsAll = false

    static let withoutDigests = KeeperSettings(digestBytesMin: .max, keepsAll: true)
    static let withoutSnapshots = KeeperSettings(snapshotBytesMin: .max, keepsAll: true)
}

/// What a sequencer has kept since its start.
struct Kept: Codable, Sendable {
    /// The nanoseconds from its start until it accepts nodes.
    var started: UInt64 = 0
    /// The number of entries that it read at its start.
    var read: UInt64 = 0
    var snapshots = 0
    /// The place of the newest snapshot. `snapshotBytes` is its size.
    var snapshotAt: UInt64 = 0
    var snapshotBytes: UInt64 = 0
    var checkpoints = 0
    /// The size of the newest checkpoint.
    var checkpointBytes = 0
    /// The reported failures.
    var failures: [String] = []
}
