import CSQLite
import Dispatch
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The system's files, except that the writes and syncs of a write-ahead log are counted, and fail on
/// demand. Each object has its own SQLite VFS, so that tests that run at the same time have separate
/// disks.
// Sendable: the flags are atomic; `system` and the tables are set before the VFS is registered, or
// under the mutex of `disks`.
package final class FaultyDisk: @unchecked Sendable {
    /// The VFS with which to open the log.
    package let vfs: String
    /// Whether syncs fail, with an error of the disk.
    package let failsToSync = Atomic(false)
    /// Whether writes find the disk full.
    package let isFull = Atomic(false)
    /// Called by each sync that hangs; nil if none does.
    private let whenHung = Mutex<(@Sendable () -> Void)?>(nil)
    /// A hanging sync waits for this.
    private let recovery = DispatchSemaphore(value: 0)
    /// The number of requested syncs.
    package let syncs = Atomic(0)

    private let system: UnsafeMutablePointer<sqlite3_vfs>
    private let methods: UnsafeMutablePointer<sqlite3_io_methods>
    /// The system's own methods for a write-ahead log. They are set when the first one is opened.
    private var systemMethods: UnsafePointer<sqlite3_io_methods>?

    /// The disks, by the address of their methods, which identifies a file's disk. They are never freed.
    private static let disks = Mutex<[UInt: FaultyDisk]>([:])

    /// Makes a disk without faults, and registers its VFS.
    package init?() {
        guard let system = sqlite3_vfs_find(nil) else { return nil }
        self.system = system
        methods = .allocate(capacity: 1)
        methods.initialize(to: sqlite3_io_methods())
        vfs = "conflux-faulty-\(UInt(bitPattern: methods))"
        let table = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        table.initialize(to: system.pointee)
        table.pointee.pNext = nil
        table.pointee.zName = vfs.withCString { UnsafePointer(strdup($0)) }
        table.pointee.pAppData = Unmanaged.passRetained(self).toOpaque()
        table.pointee.xOpen = { table, path, file, flags, outFlags in
            guard let data = table?.pointee.pAppData, let file else { return SQLITE_ERROR }
            let disk = Unmanaged<FaultyDisk>.fromOpaque(data).takeUnretainedValue()
            let code = disk.system.pointee.xOpen(disk.system, path, file, flags, outFlags)
            if code == SQLITE_OK && flags & SQLITE_OPEN_WAL != 0 { disk.intercept(file) }
            return code
        }
        guard sqlite3_vfs_register(table, 0) == SQLITE_OK else { return nil }
    }

    /// Makes each sync hang until ``recover()``.
    ///
    /// - Parameter whenHung: Called by each sync that hangs.
    package func hang(_ whenHung: @escaping @Sendable () -> Void) {
        self.whenHung.withLock { $0 = whenHung }
    }

    /// Ends the hanging sync. Later syncs do not hang.
    package func recover() {
        whenHung.withLock { $0 = nil }
        recovery.signal()
    }

    private func intercept(_ file: UnsafeMutablePointer<sqlite3_file>) {
        guard let original = file.pointee.pMethods else { return }
        Self.disks.withLock { disks in
            if systemMethods == nil {
                systemMethods = original
                methods.pointee = original.pointee
                methods.pointee.xSync = { file, flags in
                    guard let disk = FaultyDisk.of(file) else { return SQLITE_ERROR }
                    disk.syncs.add(1, ordering: .relaxed)
                    if let whenHung = disk.whenHung.withLock({ $0 }) {
                        whenHung()
                        disk.recovery.wait()
                    }
                    // SQLITE_IOERR_FSYNC, a macro that Swift does not import.
                    if disk.failsToSync.load(ordering: .relaxed) { return SQLITE_IOERR | 4 << 8 }
                    return disk.systemMethods?.pointee.xSync(file, flags) ?? SQLITE_ERROR
                }
                methods.pointee.xWrite = { file, bytes, count, offset in
                    guard let disk = FaultyDisk.of(file) else { return SQLITE_ERROR }
                    if disk.isFull.load(ordering: .relaxed) { return SQLITE_FULL }
                    return disk.systemMethods?.pointee.xWrite(file, bytes, count, offset)
                        ?? SQLITE_ERROR
                }
                disks[UInt(bitPattern: methods)] = self
            }
        }
        file.pointee.pMethods = UnsafePointer(methods)
    }

    private static func of(_ file: UnsafeMutablePointer<sqlite3_file>?) -> FaultyDisk? {
        disks.withLock { $0[UInt(bitPattern: file?.pointee.pMethods)] }
    }
}
