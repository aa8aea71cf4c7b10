import ConfluxSystem

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The file of a crash journal. It is mapped while this object lives, and locked for one owner
/// until it is unlocked.
///
///     header, 64 bytes   "CFXCRASH", version, number of slots, program: a word each
///     slots              see ``CrashSlot``
///
/// The mapping is shared. A stored word belongs to the system at once, and survives any end of the
/// process. The file is not synced: after a power failure it may be as it was before, or damaged. All
/// its blocks are written when it is made, so that a full disk can't end a process that writes to it.
// Sendable: immutable; ``CrashSlot`` documents who uses the mapped memory. `program` is used by the
// thread that opens the file.
final class CrashJournalFile: @unchecked Sendable {
    /// Each layout has its own number.
    static let version: UInt64 = 2
    private static let magic: UInt64 = "CFXCRASH".utf8.reduce(0) { $0 << 8 | UInt64($1) }
    private static let programOffset = 24

    let path: String
    let slotCount: Int
    /// Why the file's former contents are not used; nil if they are, or there were none.
    let warning: String?
    private let descriptor: Int32
    private let memory: UnsafeMutableRawPointer

    /// Opens a journal, or makes one. One that is damaged or has another version begins anew.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - slotCount: How many stores it has room for.
    /// - Throws: `journalUnusable`, `journalInUse`.
    init(_ path: String, slotCount: Int) throws(NodeError) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw NodeError(
                code: .journalUnusable, message: "The crash journal needs a file's name. Give one.")
        }
        let descriptor = try Self.lock(path)
        do throws(NodeError) {
            let flaw = try Self.prepare(descriptor, path, slotCount)
            warning = flaw.map {
                "The crash journal \(path) begins anew, since \($0). Crashes are counted from zero."
            }
            let memory = mmap(
                nil, Self.fileBytes(slotCount), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
            guard let memory, memory != MAP_FAILED else { throw Self.unusable(path, errno) }
            self.memory = memory
        } catch {
            close(descriptor)
            throw error
        }
        self.path = path
        self.slotCount = slotCount
        self.descriptor = descriptor
    }

    /// Makes a journal in memory only.
    ///
    /// - Parameter slotCount: How many stores it has room for.
    init(inMemory slotCount: Int) {
        path = "memory"
        self.slotCount = slotCount
        warning = nil
        descriptor = -1
        let bytes = Self.fileBytes(slotCount)
        memory = .allocate(byteCount: bytes, alignment: CrashSlot.bytes)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
    }

    deinit {
        guard descriptor >= 0 else { return memory.deallocate() }
        munmap(memory, Self.fileBytes(slotCount))
        unlock()
        close(descriptor)
    }

    /// Releases it for another owner.
    func unlock() {
        // Unlock explicitly: closing is not enough, since a forked child has the descriptor, too.
        _ = flock(descriptor, LOCK_UN)
    }

    func slot(_ index: Int) -> CrashSlot {
        precondition((0..<slotCount).contains(index), "there is no slot \(index)")
        return CrashSlot(memory + (index + 1) * CrashSlot.bytes)
    }

    /// The program whose crashes are counted.
    var program: UInt64 {
        get { memory.load(fromByteOffset: Self.programOffset, as: UInt64.self) }
        set { memory.storeBytes(of: newValue, toByteOffset: Self.programOffset, as: UInt64.self) }
    }

    // MARK: Opening

    private static func fileBytes(_ slotCount: Int) -> Int { (slotCount + 1) * CrashSlot.bytes }

    /// Opens the file as its only owner, and makes it if it is missing.
    private static func lock(_ path: String) throws(NodeError) -> Int32 {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw unusable(path, errno) }
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let number = errno
            if number == EINTR { continue }
            close(descriptor)
            guard number == EWOULDBLOCK else { throw unusable(path, number) }
            throw NodeError(
                code: .journalInUse,
                message: """
                    The crash journal \(path) is in use already. Each node needs one of its \
                    own: give this one another file, or end the other node.
                    """)
        }
        return descriptor
    }

    /// Makes a journal of a file that is not one yet.
    ///
    /// - Returns: What is wrong with the journal that was there; nil if nothing is, or there was none.
    /// - Throws: `journalUnusable`, also for a file that is no journal, which is left alone.
    private static func prepare(
        _ descriptor: Int32, _ path: String, _ slotCount: Int
    ) throws(NodeError) -> String? {
        let header = [magic, version, UInt64(slotCount)]
        var found = header.map { _ in UInt64(0) }
        let size = lseek(descriptor, 0, SEEK_END)
        let count = found.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard size >= 0, count >= 0 else { throw unusable(path, errno) }
        let bytes = fileBytes(slotCount)
        if found == header, size == bytes { return nil }
        var flaw: String?
        // The header is written last. Without one, the process that made the file died before it was complete.
        if size > bytes || found.contains(where: { $0 != 0 }) {
            guard found[0] == magic else {
                throw unusable(path, "it is another kind of file, which is left as it is")
            }
            flaw =
                found[1] == version
                ? "it was damaged" : "its format has version \(found[1])"
        }
        guard ftruncate(descriptor, 0) == 0 else { throw unusable(path, errno) }
        try write([UInt8](repeating: 0, count: bytes), descriptor, path)
        try write(header.flatMap { withUnsafeBytes(of: $0, Array.init) }, descriptor, path)
        return flaw
    }

    private static func write(
        _ bytes: [UInt8], _ descriptor: Int32, _ path: String
    ) throws(NodeError) {
        var offset = 0
        while offset < bytes.count {
            let written = bytes[offset...].withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset))
            }
            if written > 0 {
                offset += written
            } else if errno != EINTR {
                throw unusable(path, errno)
            }
        }
    }

    private static func unusable(_ path: String, _ number: Int32) -> NodeError {
        unusable(path, reason: SystemFailure(number, at: path).reason(advice: advice))
    }

    private static func unusable(_ path: String, _ flaw: String) -> NodeError {
        unusable(path, reason: "\(flaw). \(advice)")
    }

    private static func unusable(_ path: String, reason: String) -> NodeError {
        NodeError(
            code: .journalUnusable, message: "The crash journal \(path) can't be used: \(reason)")
    }

    private static let advice =
        "Give a file that this user may make and write, in a folder that there is."
}
