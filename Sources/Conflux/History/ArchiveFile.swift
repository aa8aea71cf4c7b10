import ConfluxVocabulary
import Foundation

/// A file that holds one value as it was saved last: a line that says what follows, and the value.
///
///     conflux-archive 1 <schema version> <bytes> <digest of version and value>\n
///     <canonical JSON>
///
/// A new content is written beside it, made durable, and then takes its name; so the file is whole at any
/// time, whenever the machine stops.
struct ArchiveFile: Sendable {
    let url: URL

    private static let magic = "conflux-archive 1"
    private static let headerBytesMax = 128

    /// Reads what was saved last.
    ///
    /// - Returns: The schema version and the bytes; nil if nothing was saved.
    func read() throws(ArchiveError) -> (version: Int, bytes: [UInt8])? {
        let data: Data
        do {
            data = try Data(contentsOf: url)
        } catch CocoaError.fileReadNoSuchFile {
            return nil
        } catch {
            throw ArchiveError(.unreadable, "\(url.path) can't be read: \(error)", error)
        }
        guard let end = data.prefix(Self.headerBytesMax).firstIndex(of: UInt8(ascii: "\n")) else {
            throw damaged("it has no first line")
        }
        let words = String(decoding: data[..<end], as: UTF8.self).split(separator: " ")
        let body = data[(end + 1)...]
        guard words.count == 5, words[0...1].joined(separator: " ") == Self.magic,
            let version = Int(words[2]), let count = Int(words[3])
        else { throw damaged("its first line is none of an archive") }
        guard body.count == count else {
            throw damaged("\(body.count) of \(count) bytes are there")
        }
        let bytes = [UInt8](body)
        guard Self.digest(of: bytes, version).description == words[4] else {
            throw damaged("its digest is wrong")
        }
        return (version, bytes)
    }

    private static func digest(of bytes: [UInt8], _ version: Int) -> Digest {
        var hasher = DigestHasher()
        Array("\(version) ".utf8).withUnsafeBytes { hasher.update($0) }
        bytes.withUnsafeBytes { hasher.update($0) }
        return hasher.finish()
    }

    private func damaged(_ how: String) -> ArchiveError {
        ArchiveError(
            .damaged,
            """
            \(url.path) is not whole: \(how). It was changed by somebody else, or its disk is broken; \
            move it away to begin anew.
            """)
    }

    /// Saves a value, durably.
    func write(_ bytes: [UInt8], version: Int) throws(ArchiveError) {
        let digest = Self.digest(of: bytes, version)
        let header = "\(Self.magic) \(version) \(bytes.count) \(digest)\n"
        let beside = url.path + ".new"
        let file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw unwritable() }
        var isWritten = Self.write(Array(header.utf8), to: file) && Self.write(bytes, to: file)
        isWritten = isWritten && fsync(file) == 0
        let failure = errno
        close(file)
        guard isWritten, rename(beside, url.path) == 0 else {
            if !isWritten { errno = failure }
            let error = unwritable()
            unlink(beside)
            throw error
        }
        try synchronizeFolder()
    }

    private static func write(_ bytes: [UInt8], to file: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }

    /// Makes the file's new name durable.
    private func synchronizeFolder() throws(ArchiveError) {
        let folder = open(url.deletingLastPathComponent().path, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw unwritable() }
        defer { close(folder) }
        // Some file systems have nothing to do here, and say so.
        if fsync(folder) != 0 && errno != EINVAL && errno != ENOTSUP { throw unwritable() }
    }

    private func unwritable() -> ArchiveError {
        ArchiveError(
            .unwritable,
            """
            \(url.path) can't be written: \(String(cString: strerror(errno))). What was saved before is \
            still there.
            """)
    }
}

/// Why a value can't be archived or restored.
public struct ArchiveError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: String, Sendable {
        /// A name has other characters than `A-Z a-z 0-9 . _ -`, or is empty, too long, or of dots alone.
        case invalidName
        /// The folder or the file can't be read.
        case unreadable
        /// The file is not as it was written.
        case damaged
        /// The value can't be decoded, or was written by a newer program.
        case incompatible
        /// The file can't be written.
        case unwritable
        /// The value can't be encoded.
        case unencodable
        /// A node replicates the store.
        case replicated
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened and what to do.
    public let message: String
    /// What caused it, if that is known.
    public let reason: (any Error)?

    init(_ code: Code, _ message: String, _ reason: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.reason = reason
    }

    /// The code and the message.
    public var description: String { "\(code.rawValue): \(message)" }
}
