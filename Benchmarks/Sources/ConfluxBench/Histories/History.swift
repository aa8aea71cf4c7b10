import Foundation

/// A sequencer with a log in a folder, a node that writes a ledger, and what it has written.
final class History {
    let keeper: Child
    let address: String
    let feed: String
    let writer: Child
    /// How large the ledger is.
    let rows: Int
    /// How many actions were written.
    private(set) var count = 0
    /// What the sequencer had kept when it was asked last.
    private(set) var kept = Kept()

    static let name = "main"
    /// How many actions are written at once at most.
    private static let chunk = 50_000

    /// Begins a history with a state of so many bytes.
    init(
        _ settings: KeeperSettings, log: String, stateBytes: Int, in cluster: Cluster
    ) throws {
        (keeper, address, feed) = try cluster.startKeeper(settings, log: log)
        rows = stateBytes / LedgerRow.bytes
        writer = try cluster.start(.ledger(address: address))
        try writer.time(.open(Self.name))
        try writer.time(.fill(Self.name, rows: rows))
    }

    /// Writes actions until there are so many.
    ///
    /// - Returns: How long it took.
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

    /// Writes so many actions or more, until a snapshot is there, and so many behind it.
    func write(atLeast goal: Int, tail: Int) throws {
        try write(to: goal)
        let former = try look().snapshots
        // A snapshot comes from its digest point on, while we write.
        while try look().snapshots == former || tail < behind {
            try write(to: count + tail / 4)
            // Time for one to come.
            usleep(20_000)
        }
        try write(to: count + tail - behind)
    }

    /// How many actions are behind the newest snapshot, about: other entries are few.
    private var behind: Int { Int(clamping: Int64(last) - Int64(clamping: kept.snapshotAt)) }

    /// The number of the last action, about.
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

    /// How long it takes a new node until it is current.
    func join(in cluster: Cluster) throws -> UInt64 {
        let node = try cluster.start(.ledger(address: address))
        defer { node.end() }
        let took = try node.time(.open(Self.name))
        try node.time(.close)
        return took
    }
}
