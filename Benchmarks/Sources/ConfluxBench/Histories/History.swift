import Foundation

/// A sequencer with a log in a folder, a node that writes a ledger, and counts of what it has written.
final class History {
    let keeper: Child
    let address: String
    let feed: String
    let writer: Child
    /// The number of rows in the ledger.
    let rows: Int
    /// The number of written actions.
    private(set) var count = 0
    /// The sequencer's last report of what it has kept.
    private(set) var kept = Kept()

    static let name = "main"
    /// The largest number of actions that are written at once.
    private static let chunk = 50_000

    /// Starts a history with a state of this size.
    init(
        _ settings: KeeperSettings, log: String, stateBytes: Int, in cluster: Cluster
    ) throws {
        (keeper, address, feed) = try cluster.startKeeper(settings, log: log)
        rows = stateBytes / LedgerRow.bytes
        writer = try cluster.start(.ledger(address: address))
        try writer.time(.open(Self.name))
        try writer.time(.fill(Self.name, rows: rows))
    }

    /// Writes actions until their number reaches the goal.
    ///
    /// - Returns: How long that took.
    @discardableResult
    func write(to goal: Int, inChunksOf chunk: Int = History.chunk) throws -> UInt64 {
        var took: UInt64 = 0
        while count < goal {
            let part = min(chunk, goal - count)
            took += try writer.time(.write(Self.name, first: count, count: part, rows: rows))
            count += part
        }
        return took
    }

    /// Writes at least this many actions, continues until there is a new snapshot, and ends `tail` actions after it.
    func write(atLeast goal: Int, tail: Int) throws {
        try write(to: goal)
        let former = try look().snapshots
        // A snapshot is made in the time after its digest point, while we write.
        while try look().snapshots == former || tail < behind {
            try write(to: count + tail / 4)
            // Leaves some time for a snapshot.
            usleep(20_000)
        }
        try write(to: count + tail - behind)
    }

    /// About how many actions follow the newest snapshot. There are few entries of other kinds.
    private var behind: Int { Int(clamping: Int64(last) - Int64(clamping: kept.snapshotAt)) }

    /// About the number of the last action's entry.
    private var last: Int { count + rows / 1_000 }

    @discardableResult
    func look() throws -> Kept {
        kept = try keeper.kept()
        return kept
    }

    /// Waits until the sequencer has kept something.
    func wait(for what: String, until isThere: (Kept) -> Bool) throws {
        let deadline = ContinuousClock.now + Child.patience
        while try !isThere(look()) {
            guard ContinuousClock.now < deadline else {
                throw BenchError("no \(what) came: \(kept.failures)")
            }
            usleep(5_000)
        }
    }

    /// Measures how long a new node takes until it is current.
    func join(in cluster: Cluster) throws -> UInt64 {
        let node = try cluster.start(.ledger(address: address))
        defer { node.end() }
        let took = try node.time(.open(Self.name))
        try node.time(.close)
        return took
    }
}
