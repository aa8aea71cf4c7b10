import ConfluxSystem
import ConfluxVocabulary
import Foundation

/// A file that holds one value as it was saved last: a line that describes it, and the value.
///
///     conflux-archive 1 <schema version> <bytes> <digest of version and value>\n
///     <canonical JSON>
///
/// New content is written to a file beside it, which is made durable and then takes its name. So
/// the file is whole at any time, even if the machine stops.
///
/// **Names.** Some disks ignore case in names. So names are written in lower case. A hexadecimal number with a
/// bit for each character says which letters are capitals: `1~ab.archive` is `ab` of the space `1`, and
/// `1~ab^2.archive` is `aB`.
struct ArchiveFile: Sendable {
    private let folder: URL
    private let name: String

    private var url: URL { folder.appendingPathComponent(name) }

    /// Describes a file in a folder.
    ///
    /// - Parameters:
    ///   - folder: The folder.
    ///   - space: Keeps names apart; checked.
    ///   - name: The value's name; checked, so that neither has a `^` or a `~`.
    init(folder: URL, space: String, name: String) {
        self.folder = folder
        self.name = "\(Self.caseless(space))~\(Self.caseless(name)).archive"
    }

    /// Encodes a name so that no two encoded names differ in case alone.
    private static func caseless(_ text: String) -> String {
        var capitals: UInt64 = 0
        for (index, character) in text.enumerated() where character.isUppercase {
            capitals |= 1 << UInt64(index)
        }
        return text.lowercased() + (capitals == 0 ? "" : "^" + String(capitals, radix: 16))
    }

    private static let magic = "conflux-archive 1"
    private static let headerBytesMax = 128

    /// Reads what was saved last.
    ///
    /// - Returns: The schema version, the bytes, and where they are; nil if nothing was saved.
    func read() throws(StoreError) -> (version: Int, bytes: [UInt8], url: URL)? {
        guard try names().contains(name) else { return nil }
        let (version, bytes) = try read(url)
        return (version, bytes, url)
    }

    private func names() throws(StoreError) -> [String] {
        do throws(SystemFailure) {
            return try Folder.names(in: folder.path)
        } catch {
            let reason = error.reason(advice: "Put the folder back.")
            throw StoreError(
                .unreadable, "The folder \(folder.path) can't be read: \(reason)", error)
        }
    }

    private func read(_ url: URL) throws(StoreError) -> (version: Int, bytes: [UInt8]) {
        let data: [UInt8]
        do throws(SystemFailure) {
            data = try InputFile(url.path).readAll()
        } catch {
            let reason = error.reason(advice: "Read it again.")
            throw StoreError(.unreadable, "\(url.path) can't be read: \(reason)", error)
        }
        guard let end = data.prefix(Self.headerBytesMax).firstIndex(of: UInt8(ascii: "\n")) else {
            throw damaged(url, "it has no first line")
        }
        let words = (try? String(utf8: data[..<end]))?.split(separator: " ") ?? []
        let body = data[(end + 1)...]
        guard words.count == 5, words[0...1].joined(separator: " ") == Self.magic,
            let version = Int(words[2]), let count = Int(words[3])
        else { throw damaged(url, "its first line is not that of an archive") }
        guard body.count == count else {
            throw damaged(url, "\(body.count) of \(count) bytes are there")
        }
        let bytes = [UInt8](body)
        guard Self.checksum(of: bytes, version) == words[4] else {
            throw damaged(url, "its checksum is wrong")
        }
        return (version, bytes)
    }

    private static func checksum(of bytes: [UInt8], _ version: Int) -> String {
        var hasher = ChecksumHasher()
        Array("\(version) ".utf8).withUnsafeBytes { hasher.update($0) }
        bytes.withUnsafeBytes { hasher.update($0) }
        return Checksum.text(hasher.finish())
    }

    private func damaged(_ url: URL, _ how: String) -> StoreError {
        StoreError(
            .damaged,
            """
            \(url.path) is damaged: \(how). It was changed by somebody else, or its disk is \
            broken; move it away to start afresh.
            """)
    }

    /// Saves a value, durably.
    func write(_ bytes: [UInt8], version: Int) throws(StoreError) {
        let checksum = Self.checksum(of: bytes, version)
        let header = "\(Self.magic) \(version) \(bytes.count) \(checksum)\n"
        let beside = url.path + ".new"
        let file = try openAlone(beside)
        // Closing the file releases its lock, so that the next writer can continue.
        defer { close(file) }
        var isWritten = ftruncate(file, 0) == 0
        isWritten = isWritten && Self.write(Array(header.utf8), to: file)
        isWritten = isWritten && Self.write(bytes, to: file) && fsync(file) == 0
        guard isWritten, rename(beside, url.path) == 0 else {
            let failure = SystemFailure(errno, at: beside)
            unlink(beside)
            throw unwritable(failure)
        }
        try synchronizeFolder()
    }

    /// Opens a file that nobody else writes meanwhile: neither another ``Archived`` nor another
    /// process.
    private func openAlone(_ path: String) throws(StoreError) -> Int32 {
        while true {
            let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw unwritable(SystemFailure(errno, at: path)) }
            // If the file system has no locks, nothing more can be done.
            while flock(file, LOCK_EX) != 0 && errno == EINTR {}
            var (opened, present) = (stat(), stat())
            let isThere =
                fstat(file, &opened) == 0 && stat(path, &present) == 0
                && opened.st_ino == present.st_ino && opened.st_dev == present.st_dev
            if isThere { return file }
            // Its last writer has renamed it.
            close(file)
        }
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
    private func synchronizeFolder() throws(StoreError) {
        let path = folder.path
        let folder = open(path, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw unwritable(SystemFailure(errno, at: path)) }
        defer { close(folder) }
        // Some file systems don't support this, and don't need it.
        if fsync(folder) != 0 && errno != EINVAL && errno != ENOTSUP {
            throw unwritable(SystemFailure(errno, at: path))
        }
    }

    private func unwritable(_ failure: SystemFailure) -> StoreError {
        let reason = failure.reason(advice: "Make sure that the folder is there, and save again.")
        return StoreError(
            .unwritable,
            "\(url.path) can't be written, and what was saved before is still there: \(reason)",
            failure)
    }
}
