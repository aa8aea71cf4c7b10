import CSQLite
import Foundation

@testable import ConfluxLog

/// A disk that keeps what was synced, and as much of the rest as a test wants.
///
/// It is a SQLite VFS on top of the system's. SQLite reads real files, which take the place of the system's
/// cache. This object has what would be there after a power loss. A failed sync has the effect that it has
/// on Linux: the written data can still be read, but no later sync writes it to the disk.
///
/// Only one is used at a time: `use` installs it for a test's thread.
final class LosingDisk {
    static let name = "conflux-losing"

    enum Part: Hashable {
        case database, writeAhead, journal
        /// The file of entries with this name.
        case entries(String)

        fileprivate init?(_ path: String, flags: Int32) {
            let name = path.split(separator: "/").last.map(String.init) ?? ""
            if name.hasPrefix("entries-") {
                self = .entries(name)
            } else if flags & SQLITE_OPEN_MAIN_DB != 0 {
                self = .database
            } else if flags & SQLITE_OPEN_WAL != 0 {
                self = .writeAhead
            } else if flags & SQLITE_OPEN_MAIN_JOURNAL != 0 {
                self = .journal
            } else {
                return nil
            }
        }

        /// The file's name.
        var name: String {
            switch self {
            case .database: "log.sqlite"
            case .writeAhead: "log.sqlite-wal"
            case .journal: "log.sqlite-journal"
            case .entries(let name): name
            }
        }
    }

    /// SQLite's calls to the disk.
    enum Call: Hashable {
        case read, write, sync, truncate
    }

    /// The way in which a call fails.
    enum Fault: Hashable, CaseIterable {
        /// An error of the device.
        case error
        /// A write finds no room. Other calls don't fail.
        case full

        fileprivate func code(of call: Call) -> Int32? {
            switch (self, call) {
            // Extended codes, which are macros that Swift does not import.
            case (.error, .read): SQLITE_IOERR | 1 << 8
            case (.error, .write): SQLITE_IOERR | 3 << 8
            case (.error, .sync): SQLITE_IOERR | 4 << 8
            case (.error, .truncate): SQLITE_IOERR | 6 << 8
            case (.full, .write): SQLITE_FULL
            case (.full, _): nil
            }
        }
    }

    /// A change that was not synced.
    enum Change {
        case write(offset: Int, bytes: [UInt8])
        case truncate(to: Int)

        func apply(to image: inout [UInt8]) {
            switch self {
            case .write(let offset, let bytes):
                if image.count < offset + bytes.count {
                    image += [UInt8](repeating: 0, count: offset + bytes.count - image.count)
                }
                // `replaceSubrange` takes minutes in a debug build.
                image.withUnsafeMutableBytes { image in
                    UnsafeMutableRawBufferPointer(rebasing: image[offset...])
                        .copyBytes(from: bytes)
                }
            case .truncate(let size):
                if image.count > size { image.removeLast(image.count - size) }
            }
        }
    }

    /// What is on the disk, and what may be on it.
    struct Image {
        var durable: [Part: [UInt8]] = [:]
        var pending: [Part: [Change]] = [:]
    }

    private(set) var image = Image()
    /// The number of calls so far.
    private(set) var callCount = 0
    /// The call that fails, counted from 0, and its fault.
    var fault: (at: Int, Fault)?
    /// Whether the next sync fails, and none after it.
    var failsNextSync = false
    /// Whether the fault has happened.
    private(set) var hasFailed = false
    /// Is called before each call that changes something.
    var beforeChange: ((LosingDisk) -> Void)?

    /// While the body runs, all logs that are opened with the VFS's name use this disk.
    func use<Result>(_ body: () throws -> Result) throws -> Result {
        guard Self.isRegistered else { throw LogError(.failed, "SQLite takes no VFS") }
        Self.current = self
        defer { Self.current = nil }
        return try body()
    }

    /// Makes files durable that were written without this disk.
    func hold(_ files: [Part: [UInt8]]) { image.durable = files }

    fileprivate func fails(_ call: Call) -> Int32? {
        defer { callCount += 1 }
        if call != .read { beforeChange?(self) }
        if call == .sync, failsNextSync {
            failsNextSync = false
            return Fault.error.code(of: call)
        }
        guard let fault, fault.at == callCount, let code = fault.1.code(of: call) else {
            return nil
        }
        hasFailed = true
        return code
    }

    fileprivate func change(_ part: Part, _ change: Change) {
        image.pending[part, default: []].append(change)
    }

    fileprivate func synced(_ part: Part) {
        for change in image.pending.removeValue(forKey: part) ?? [] {
            change.apply(to: &image.durable[part, default: []])
        }
    }

    fileprivate func syncFailed(_ part: Part) {
        image.pending[part] = nil
    }

    fileprivate func removed(_ path: String) {
        if path.hasSuffix(Part.journal.name) {
            image.durable[.journal] = nil
            image.pending[.journal] = nil
        }
        // A file that was removed is gone at once: nothing syncs the folder, and nothing keeps it either.
        if let name = path.split(separator: "/").last, name.hasPrefix("entries-") {
            image.durable[.entries(String(name))] = nil
            image.pending[.entries(String(name))] = nil
        }
    }

    // MARK: SQLite

    private struct OpenFile {
        let part: Part
        let original: UnsafePointer<sqlite3_io_methods>
        let own: UnsafeMutablePointer<sqlite3_io_methods>
    }

    // Only one of these tests runs at a time, and only its thread uses these three.
    nonisolated(unsafe) private static var current: LosingDisk?
    nonisolated(unsafe) private static var system: UnsafeMutablePointer<sqlite3_vfs>?
    nonisolated(unsafe) private static var files: [UnsafeMutablePointer<sqlite3_file>: OpenFile] =
        [:]

    private static let isRegistered: Bool = {
        guard let system = sqlite3_vfs_find(nil) else { return false }
        LosingDisk.system = system
        let own = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        own.initialize(to: system.pointee)
        own.pointee.pNext = nil
        own.pointee.zName = LosingDisk.name.withCString { UnsafePointer(strdup($0)) }
        own.pointee.xOpen = { _, path, file, flags, outFlags in
            guard let system = LosingDisk.system, let file else { return SQLITE_ERROR }
            let code = system.pointee.xOpen(system, path, file, flags, outFlags)
            if code == SQLITE_OK, let path, let part = Part(String(cString: path), flags: flags) {
                LosingDisk.wrap(file, part)
            }
            return code
        }
        own.pointee.xDelete = { _, path, syncsFolder in
            guard let system = LosingDisk.system, let path else { return SQLITE_ERROR }
            LosingDisk.current?.removed(String(cString: path))
            return system.pointee.xDelete(system, path, syncsFolder)
        }
        return sqlite3_vfs_register(own, 0) == SQLITE_OK
    }()

    private static func wrap(_ file: UnsafeMutablePointer<sqlite3_file>, _ part: Part) {
        guard let original = file.pointee.pMethods else { return }
        let own = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        own.initialize(to: original.pointee)
        own.pointee.xClose = { file in
            guard let file, let open = LosingDisk.files.removeValue(forKey: file) else {
                return SQLITE_ERROR
            }
            defer { open.own.deallocate() }
            return open.original.pointee.xClose(file)
        }
        own.pointee.xRead = { file, bytes, count, offset in
            LosingDisk.with(file, .read) { open, _, file in
                open.original.pointee.xRead(file, bytes, count, offset)
            }
        }
        own.pointee.xWrite = { file, bytes, count, offset in
            LosingDisk.with(file, .write) { open, disk, file in
                let code = open.original.pointee.xWrite(file, bytes, count, offset)
                if code == SQLITE_OK {
                    let bytes = UnsafeRawBufferPointer(start: bytes, count: Int(count))
                    disk?.change(open.part, .write(offset: Int(offset), bytes: Array(bytes)))
                }
                return code
            }
        }
        own.pointee.xTruncate = { file, size in
            LosingDisk.with(file, .truncate) { open, disk, file in
                let code = open.original.pointee.xTruncate(file, size)
                if code == SQLITE_OK { disk?.change(open.part, .truncate(to: Int(size))) }
                return code
            }
        }
        own.pointee.xSync = { file, flags in
            LosingDisk.with(file, .sync) { open, disk, file in
                // Nothing here has to survive a power loss, so the real disk is not synced.
                disk?.synced(open.part)
                return SQLITE_OK
            }
        }
        files[file] = OpenFile(part: part, original: original, own: own)
        file.pointee.pMethods = UnsafePointer(own)
    }

    private static func with(
        _ file: UnsafeMutablePointer<sqlite3_file>?, _ call: Call,
        _ body: (OpenFile, LosingDisk?, UnsafeMutablePointer<sqlite3_file>) -> Int32
    ) -> Int32 {
        guard let file, let open = files[file] else { return SQLITE_ERROR }
        let disk = current
        if let code = disk?.fails(call) {
            if call == .sync { disk?.syncFailed(open.part) }
            return code
        }
        return body(open, disk, file)
    }
}
