import Conflux
import ConfluxSystem
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The file of a crash journal. It is mapped while this object lives, and locked for one owner
/// until it is unlocked.
///
///     header, 256 bytes   "CFXCRASH", version, size of a slot, number of slots, digest of these,
///                         program: a word each
///     slots               see ``CrashSlot``
///
/// The mapping is shared. A stored word belongs to the system at once, and survives any end of the
/// process. The file is not synced: after a power failure it may be as it was before, or damaged. All
/// its blocks are written when it is made, so that a full disk can't end a process that writes to it.
// Sendable: immutable; ``CrashSlot`` documents who uses the mapped memory. `program` is used by the
// thread that opens the file.
final class CrashJournalFile: @unchecked Sendable {
    /// Each layout has its own number. A program that does not know the number sets the file aside.
    static let version: UInt64 = 1
    private static let magic: UInt64 = "CFXCRASH".utf8.reduce(0) { $0 << 8 | UInt64($1) }
    private static let programOffset = 40

    /// A file that is open, locked and mapped.
    private struct Opened {
        var descriptor: Int32
        var memory: UnsafeMutableRawPointer
    }

    let path: String
    let slotCount: Int
    /// Which damaged file was set aside, and why; nil if none was found.
    let warning: String?
    private let opened: Opened

    /// Opens a journal, or makes one.
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
        self.path = path
        self.slotCount = slotCount
        var flaw: String?
        if let opened = try Self.open(path, slotCount, flaw: &flaw) {
            self.opened = opened
            warning = nil
            return
        }
        // The damaged file is out of the way. Make a new one in its place, if possible.
        let former = flaw ?? "it can't be read"
        guard let opened = try Self.open(path, slotCount, flaw: &flaw) else {
            throw Self.unusable(path, flaw ?? former)
        }
        self.opened = opened
        warning = """
            The crash journal \(path) was damaged (\(former)), and is now \(path).damaged. \
            Crashes are counted from zero.
            """
    }

    /// Makes a journal in memory only.
    ///
    /// - Parameter slotCount: How many stores it has room for.
    init(inMemory slotCount: Int) {
        path = "memory"
        self.slotCount = slotCount
        warning = nil
        let bytes = Self.fileBytes(slotCount)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 256)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
        opened = Opened(descriptor: -1, memory: memory)
    }

    deinit {
        guard opened.descriptor >= 0 else {
            opened.memory.deallocate()
            return
        }
        munmap(opened.memory, Self.fileBytes(slotCount))
        unlock()
        close(opened.descriptor)
    }

    /// Releases it for another owner.
    func unlock() {
        // Unlock explicitly: closing is not enough, since a forked child has the descriptor, too.
        _ = flock(opened.descriptor, LOCK_UN)
    }

    func slot(_ index: Int) -> CrashSlot {
        precondition((0..<slotCount).contains(index), "there is no slot \(index)")
        return CrashSlot(opened.memory + (index + 1) * CrashSlot.bytes)
    }

    /// Identifies the program whose crashes are counted; zero at first.
    var program: UInt64 {
        get { opened.memory.load(fromByteOffset: Self.programOffset, as: UInt64.self) }
        set {
            opened.memory.storeBytes(
                of: newValue, toByteOffset: Self.programOffset, as: UInt64.self)
        }
    }

    // MARK: Opening

    private static func fileBytes(_ slotCount: Int) -> Int { (slotCount + 1) * CrashSlot.bytes }

    /// - Returns: nil and the flaw if there was a damaged journal, which was set aside.
    private static func open(
        _ path: String, _ slotCount: Int, flaw: inout String?
    ) throws(NodeError) -> Opened? {
        let descriptor = try lock(path)
        var isKept = false
        defer { if !isKept { close(descriptor) } }
        flaw = try headerFlaw(descriptor, path, slotCount)
        if flaw == nil {
            let bytes = fileBytes(slotCount)
            guard
                let memory = mmap(
                    nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
                memory != MAP_FAILED
            else { throw unusable(path, errno) }
            let damaged = (0..<slotCount).first {
                CrashSlot(memory + ($0 + 1) * CrashSlot.bytes).content == .damaged
            }
            guard let damaged else {
                isKept = true
                return Opened(descriptor: descriptor, memory: memory)
            }
            munmap(memory, bytes)
            flaw = "its slot \(damaged) can't be read"
        }
        guard rename(path, path + ".damaged") == 0 else { throw unusable(path, errno) }
        return nil
    }

    /// Opens the file as its only owner, and makes it if it is missing.
    private static func lock(_ path: String) throws(NodeError) -> Int32 {
        while true {
            #if canImport(Darwin)
                let descriptor = Darwin.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            #else
                let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            #endif
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
            // Another process may have set the file aside before this one got the lock.
            var (locked, named) = (stat(), stat())
            if fstat(descriptor, &locked) == 0, stat(path, &named) == 0,
                locked.st_ino == named.st_ino, locked.st_dev == named.st_dev
            {
                return descriptor
            }
            close(descriptor)
        }
    }

    /// Checks the beginning of a file, and makes a journal of an empty file.
    ///
    /// - Returns: Why it is a damaged journal, or one of another version; nil for a good one.
    /// - Throws: `journalUnusable`, also for a file that is no journal, which is left alone.
    private static func headerFlaw(
        _ descriptor: Int32, _ path: String, _ slotCount: Int
    ) throws(NodeError) -> String? {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unusable(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw unusable(path, "it is not a regular file")
        }
        let expected = header(slotCount)
        guard status.st_size > 0 else {
            try make(descriptor, path, expected, fileBytes(slotCount))
            return nil
        }
        var found = [UInt64](repeating: 0, count: expected.count)
        let count = found.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count >= 0 else { throw unusable(path, errno) }
        if found.allSatisfy({ $0 == 0 }), Int(status.st_size) <= fileBytes(slotCount) {
            // The process that made it died before it was complete: the header is written last.
            try make(descriptor, path, expected, fileBytes(slotCount))
            return nil
        }
        guard found[0] == magic else {
            throw unusable(path, "it is another kind of file, which is left as it is")
        }
        if found[1] != version { return "its format has version \(found[1])" }
        if found != expected { return "its header can't be read" }
        if status.st_size != off_t(fileBytes(slotCount)) { return "it has \(status.st_size) bytes" }
        return nil
    }

    private static func header(_ slotCount: Int) -> [UInt64] {
        var words = [magic, version, UInt64(CrashSlot.bytes), UInt64(slotCount)]
        var hasher = ChecksumHasher()
        words.withUnsafeBytes { hasher.update($0) }
        words.append(hasher.finish())
        return words
    }

    private static func make(
        _ descriptor: Int32, _ path: String, _ header: [UInt64], _ bytes: Int
    ) throws(NodeError) {
        try write([UInt8](repeating: 0, count: bytes), descriptor, path)
        try write(header.flatMap { withUnsafeBytes(of: $0, Array.init) }, descriptor, path)
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
        let reason = SystemFailure(number, at: path).reason(advice: advice)
        return NodeError(
            code: .journalUnusable, message: "The crash journal \(path) can't be used: \(reason)")
    }

    private static func unusable(_ path: String, _ flaw: String) -> NodeError {
        NodeError(
            code: .journalUnusable,
            message: "The crash journal \(path) can't be used: \(flaw). \(advice)")
    }

    private static let advice =
        "Give a file that this user may make and write, in a folder that there is."
}
