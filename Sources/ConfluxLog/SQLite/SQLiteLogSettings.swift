/// How a log on disk is kept. Each value is bounded; opening the log checks it.
public struct SQLiteLogSettings: Sendable, Hashable {
    /// What an append has done when it returns.
    public enum Durability: String, Sendable, Hashable, CaseIterable {
        /// The commit is on the disk: it outlives a crash of the whole machine.
        case fsync
        /// The commit is with the operating system: it outlives a crash of this process. A crash
        /// of the machine may lose the newest commits, never ones in the middle.
        case os
    }

    /// What an append has done when it returns. Claims, and appends that are forced, reach the
    /// disk in either case.
    public var durability: Durability

    /// How large the database becomes at most, 1 MiB to 16 TiB. At the bound `append` throws
    /// `full`. The last eighth is a reserve: a sequencer admits no actions then, until checkpoints and
    /// truncation have made room. 64 GiB are some hundred million small actions.
    public var limitBytes = 64 << 30

    /// How much gathers in the write-ahead log before it is copied into the database, 1 MiB to
    /// 1 GiB. The append that reaches it makes the copy, and waits for it: rarely and long if this
    /// is large, often and short if it is small. With 16 MiB that is one append in 4,000 small
    /// ones, one in 240 of 64 KiB. The file is made this large at once.
    public var writeAheadBytes = 16 << 20

    /// How long to wait for another program that holds SQLite's lock, 0 to 60 s. Reading needs
    /// none; who writes with `sqlite3` makes appends wait.
    public var busyTimeout = Duration.seconds(5)

    /// The SQLite VFS to use; nil for the system's. A test puts faults there.
    package var vfs: String?

    /// The settings that this documentation names.
    ///
    /// - Parameter durability: What an append has done when it returns.
    public init(durability: Durability = .fsync) {
        self.durability = durability
    }

    /// Checks every value against its bounds.
    ///
    /// - Throws: `invalidSetting` for the first value that lies outside.
    public func validate() throws(LogError) {
        guard (1 << 20...1 << 44).contains(limitBytes) else {
            throw LogError(
                .invalidSetting, "limitBytes is \(limitBytes); it lies between 1 MiB and 16 TiB.")
        }
        guard (1 << 20...1 << 30).contains(writeAheadBytes) else {
            throw LogError(
                .invalidSetting,
                "writeAheadBytes is \(writeAheadBytes); it lies between 1 MiB and 1 GiB.")
        }
        guard busyTimeout >= .zero, busyTimeout <= .seconds(60) else {
            throw LogError(
                .invalidSetting, "busyTimeout is \(busyTimeout); it lies between 0 and 60 s.")
        }
    }
}
