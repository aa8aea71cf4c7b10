#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A file that is open for reading, and is closed at the end of this value's life. Its path is taken byte for byte.
package struct InputFile: ~Copyable {
    private let path: String
    private let descriptor: Int32

    /// Opens a file.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - waits: Whether a pipe without a writer is waited for.
    /// - Throws: ``SystemFailure``; `EINVAL` for a path with a zero byte.
    package init(_ path: String, waits: Bool = true) throws(SystemFailure) {
        // The system would take such a path for a shorter one.
        guard !path.utf8.contains(0) else { throw SystemFailure(EINVAL, at: path) }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | (waits ? 0 : O_NONBLOCK))
        guard descriptor >= 0 else { throw SystemFailure(errno, at: path) }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Whether others than its owner may read or write it. If another user owns it, as with the credentials of a
    /// supervisor, its group may read it, too.
    ///
    /// - Throws: `EISDIR` for a folder, which usually is open to others, but can't be read anyway.
    package func isOpenToOthers() throws(SystemFailure) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw SystemFailure(errno, at: path) }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw SystemFailure(EISDIR, at: path) }
        let forbidden: UInt32 = status.st_uid == geteuid() ? 0o077 : 0o027
        return UInt32(status.st_mode) & forbidden != 0
    }

    /// Reads from where the last call ended.
    ///
    /// - Parameter most: The most bytes to read.
    /// - Returns: As many bytes, or all up to the end. Nobody else has a copy of them.
    /// - Throws: ``SystemFailure``.
    package func read(upTo most: Int) throws(SystemFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: most)
        var count = 0
        while count < most {
            let taken = bytes.withUnsafeMutableBytes {
                readBytes(descriptor, $0.baseAddress?.advanced(by: count), most - count)
            }
            if taken == 0 { break }
            if taken > 0 {
                count += taken
            } else if errno != EINTR {
                throw SystemFailure(errno, at: path)
            }
        }
        bytes.removeLast(most - count)
        return bytes
    }

    /// Reads to the end.
    package func readAll() throws(SystemFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let piece = try read(upTo: Self.pieceBytes)
            bytes += piece
            if piece.count < Self.pieceBytes { return bytes }
        }
    }

    private static let pieceBytes = 1 << 20
}

// Outside the type: inside it, its own function hides the system's `read`.

private func readBytes(_ descriptor: Int32, _ place: UnsafeMutableRawPointer?, _ count: Int) -> Int
{
    read(descriptor, place, count)
}
