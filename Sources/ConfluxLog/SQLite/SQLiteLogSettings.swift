#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The settings of a log on disk. Each value is bounded; opening the log checks it.
public struct SQLiteLogSettings: Sendable, Hashable {
    /// What an append guarantees when it returns.
    public enum Durability: String, Sendable, Hashable, CaseIterable {
        /// The commit is on disk: it survives a crash of the machine.
        case fsync
        /// The commit is with the operating system: it survives a crash of this process. A crash of the
        /// machine may lose the newest commits, but never ones in the middle.
        case os
    }

    /// What an append guarantees when it returns. Claims and forced appends always reach the disk.
    public var durability: Durability

    /// The largest size of the log, 1 MiB to 16 TiB; nil for three quarters of the folder's file system, 64 GiB at
    /// most. It counts entries, checkpoints, snapshots, and SQLite's write-ahead log. At the bound `append` throws
    /// `full`, unless it is forced. The last part is a reserve (`LogSpace.reserveBytes(of:)`): while it is in use, a
    /// sequencer admits no actions until checkpoints and truncation have made room. 64 GiB hold some hundred million
    /// small actions.
    public var limitBytes: Int?

    /// The size at which the database's write-ahead log is copied into the database, 1 MiB to 1 GiB. The piece
    /// of a checkpoint or snapshot that reaches it waits for the copy. The file is created a quarter larger. Under a
    /// low ``limitBytes`` it is less: a sixteenth of that.
    public var writeAheadBytes = 4 << 20

    /// How long to wait for another program that holds SQLite's lock, 0 to 60 s. Readers need no lock; a
    /// program that writes with `sqlite3` makes every change wait.
    public var busyTimeout = Duration.seconds(5)

    /// The size at which the write-ahead log is copied, under a bound: a sixteenth of a low one.
    func writeAheadBytes(under limitBytes: Int) -> Int {
        min(writeAheadBytes, max(64 << 10, limitBytes >> 4))
    }

    /// The size at which a file of entries is full: 16 MiB, less under a low bound, more under a high one. The
    /// oldest entries are discarded a file at a time.
    static func fileBytes(_ limitBytes: Int) -> Int {
        (max(limitBytes >> 12, min(16 << 20, limitBytes >> 4)) + 7) & ~7
    }

    /// The bound if none is set: three quarters of a file system, 64 GiB at most.
    ///
    /// - Parameter path: A folder on the file system. If it does not exist yet, the folder that will contain it
    ///   counts.
    /// - Returns: The bound in bytes, 1 MiB at least.
    public static func limitBytes(forVolumeOf path: String) -> Int {
        var path = path
        var volume = statvfs()
        while statvfs(path, &volume) != 0 {
            guard errno == ENOENT, path.count > 1 else { return limitMost }
            let cut = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
            path = cut.isEmpty ? "/" : cut
        }
        let (bytes, overflow) = UInt64(volume.f_blocks).multipliedReportingOverflow(
            by: UInt64(volume.f_frsize))
        return overflow ? limitMost : max(1 << 20, min(limitMost, Int(clamping: bytes / 4 * 3)))
    }

    private static let limitMost = 64 << 30

    /// The SQLite VFS to use; nil for the system's. Tests inject faults there.
    package var vfs: String?

    /// Makes settings with the default values.
    ///
    /// - Parameter durability: What an append guarantees when it returns.
    public init(durability: Durability = .fsync) {
        self.durability = durability
    }

    /// Checks every value against its bounds.
    ///
    /// - Throws: `invalidSetting` for the first value that is out of bounds.
    public func validate() throws(LogError) {
        if let limitBytes, !(1 << 20...1 << 44).contains(limitBytes) {
            throw LogError(
                .invalidSetting,
                "limitBytes is \(limitBytes); it must be between 1 MiB and 16 TiB.")
        }
        guard (1 << 20...1 << 30).contains(writeAheadBytes) else {
            throw LogError(
                .invalidSetting,
                "writeAheadBytes is \(writeAheadBytes); it must be between 1 MiB and 1 GiB.")
        }
        guard busyTimeout >= .zero, busyTimeout <= .seconds(60) else {
            throw LogError(
                .invalidSetting, "busyTimeout is \(busyTimeout); it must be between 0 and 60 s.")
        }
    }
}

extension SQLiteLog {
    /// Opens the log in a folder, and creates both if they are absent.
    ///
    /// - Parameters:
    ///   - directory: The folder.
    ///   - durability: What an append guarantees when it returns.
    /// - Throws: Like `init(directory:settings:)`.
    public convenience init(
        directory: String, durability: SQLiteLogSettings.Durability
    ) throws(LogError) {
        try self.init(directory: directory, settings: SQLiteLogSettings(durability: durability))
    }
}
