#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A new file that appears under its name whole, or not at all: it is written beside its place, and renamed once it is
/// complete and on the disk. A symbolic link stays: the file appears where it leads.
package final class DraftFile {
    private let path: String
    private let draft: String
    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private var isComplete = false

    private static let bufferBytes = 1 << 20

    /// Begins a file.
    ///
    /// - Parameter path: The file, or a symbolic link to it. A file that is there is replaced in the end.
    /// - Throws: ``SystemFailure``.
    package init(_ path: String) throws(SystemFailure) {
        guard !path.utf8.contains(0) else { throw SystemFailure(EINVAL, at: path) }
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw SystemFailure(
                    status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EEXIST, at: path)
            }
        } else if errno != ENOENT {
            // The system may forbid to follow a link that somebody else made.
            throw SystemFailure(errno, at: path)
        }
        let path = try FileLink.end(of: path)
        let draft = "\(path).\(UInt64.random(in: 0 ... .max))"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemFailure(errno, at: path) }
        self.path = path
        self.draft = draft
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
        if !isComplete { unlink(draft) }
    }

    /// Appends bytes.
    ///
    /// - Throws: ``SystemFailure``.
    package func write(_ bytes: some Sequence<UInt8>) throws(SystemFailure) {
        buffer.append(contentsOf: bytes)
        if buffer.count >= Self.bufferBytes { try flush() }
    }

    private func flush() throws(SystemFailure) {
        var count = 0
        while count < buffer.count {
            let taken = buffer.withUnsafeBytes {
                writeBytes(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
            }
            if taken >= 0 {
                count += taken
            } else if errno != EINTR {
                throw SystemFailure(errno, at: path)
            }
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Gives the file its name, once all of it is on the disk. Nothing may be written after that.
    ///
    /// - Throws: ``SystemFailure``; then there is no such file, or the former one.
    package func complete() throws(SystemFailure) {
        try flush()
        guard fsync(descriptor) == 0, rename(draft, path) == 0 else {
            throw SystemFailure(errno, at: path)
        }
        isComplete = true
    }
}

private func writeBytes(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    write(descriptor, bytes, count)
}
