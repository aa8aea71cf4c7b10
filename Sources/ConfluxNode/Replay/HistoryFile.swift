import ConfluxHashing
import ConfluxProtocol
import ConfluxSystem
import ConfluxVocabulary

/// The form of a history in a file.
///
///     file    = "CONFLUXHISTORY" version *section
///     section = u32 length, check, bytes
///     check   = 16 bytes of BLAKE2b of the check before and the bytes
///
/// The first section names the log. Each check covers all sections before it, so no part of another file fits, and the
/// last section is an end mark.
enum HistoryFormat {
    static let mark = Array("CONFLUXHISTORY".utf8)
    static let version: UInt8 = 1
    static let checkBytes = 16
    static let headBytes = 4 + checkBytes

    static func check(_ before: [UInt8], _ bytes: Bytes) -> [UInt8] {
        var hasher = DigestHasher()
        hasher.update(before[...])
        hasher.update(bytes)
        return hasher.finish().withBytes { Array($0.prefix(checkBytes)) }
    }
}

/// Writes a history. The file is there once the history is complete.
// Sendable: whoever holds it calls it under a lock, or on one thread at a time.
package final class HistoryWriter: @unchecked Sendable {
    private let path: String
    private var file: DraftFile
    private var check = [UInt8](repeating: 0, count: HistoryFormat.checkBytes)
    private var count: UInt64 = 0

    /// Begins a history.
    ///
    /// - Throws: ``HistoryError``.
    package init(_ path: String) throws(HistoryError) {
        self.path = path
        do throws(SystemFailure) {
            file = try DraftFile(path)
            try file.write(HistoryFormat.mark + [HistoryFormat.version])
        } catch {
            throw HistoryError(writing: path, error)
        }
    }

    /// Appends a section.
    ///
    /// - Throws: ``HistoryError``.
    package func write(_ section: HistorySection) throws(HistoryError) {
        let bytes = section.encoded
        check = HistoryFormat.check(check, bytes[...])
        count += 1
        do throws(SystemFailure) {
            try file.write(withUnsafeBytes(of: UInt32(bytes.count).littleEndian) { Array($0) })
            try file.write(check)
            try file.write(bytes)
        } catch {
            throw HistoryError(writing: path, error)
        }
    }

    /// Writes the end mark, and gives the file its name.
    ///
    /// - Throws: ``HistoryError``.
    package func complete() throws(HistoryError) {
        try write(.end(count: count))
        do throws(SystemFailure) {
            try file.complete()
        } catch {
            throw HistoryError(writing: path, error)
        }
    }
}

/// Reads a history from its beginning, and checks every section.
package final class HistoryReader {
    private let path: String
    private let file: InputFile
    private var buffer: [UInt8] = []
    private var position = 0
    private var check = [UInt8](repeating: 0, count: HistoryFormat.checkBytes)
    private var count: UInt64 = 0
    private var log: LogID?
    private var next: SequenceNumber?
    private var isAtEnd = false

    private static let pieceBytes = 1 << 20

    /// Opens a history.
    ///
    /// - Throws: ``HistoryError``.
    package init(_ path: String) throws(HistoryError) {
        self.path = path
        do throws(SystemFailure) {
            file = try InputFile(path)
        } catch {
            throw HistoryError(reading: path, error)
        }
        let head = try take(HistoryFormat.mark.count + 1)
        guard let head, head.starts(with: HistoryFormat.mark), let version = head.last else {
            throw HistoryError(
                code: .notAHistory,
                message: "\(path) is not a history, which `conflux log export` writes.")
        }
        guard version == HistoryFormat.version else {
            throw HistoryError(
                code: .newerFormat,
                message: """
                    The history \(path) has format \(version), and this program reads \
                    \(HistoryFormat.version). Use the version of Conflux that wrote it, or export it again.
                    """)
        }
    }

    /// Takes bytes; nil if the file has fewer.
    private func take(_ count: Int) throws(HistoryError) -> Bytes? {
        while buffer.count - position < count {
            let piece: [UInt8]
            do throws(SystemFailure) {
                piece = try file.read(upTo: max(Self.pieceBytes, count))
            } catch {
                throw HistoryError(reading: path, error)
            }
            guard !piece.isEmpty else { return nil }
            buffer = position == buffer.count ? piece : buffer[position...] + piece
            position = 0
        }
        defer { position += count }
        return buffer[position..<position + count]
    }

    /// Reads the next section.
    ///
    /// - Returns: The section; nil behind the end mark.
    /// - Throws: ``HistoryError``.
    package func read() throws(HistoryError) -> HistorySection? {
        guard !isAtEnd else { return nil }
        guard let head = try take(HistoryFormat.headBytes) else { throw cut }
        let length = head.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        let expected = Array(head.dropFirst(4))
        // A damaged length may be long, so no memory is reserved for it.
        guard let bytes = try take(length) else { throw cut }
        guard HistoryFormat.check(check, bytes) == expected else {
            throw damaged("it is damaged, or a part of another file")
        }
        check = expected
        let section: HistorySection
        do throws(WireError) {
            section = try HistorySection.decode(bytes)
        } catch {
            throw damaged("a section can't be read: \(error.message)")
        }
        try accept(section)
        count += 1
        return section
    }

    private func accept(_ section: HistorySection) throws(HistoryError) {
        switch section {
        case .head(let log, _, _, _): self.log = log
        case .commit(let commit):
            guard commit.log == log else {
                throw HistoryError(
                    code: .otherLog,
                    message: """
                        The history \(path) is of log \(log?.description ?? "-"), and entry \
                        \(commit.first) is of log \(commit.log). Export it again.
                        """)
            }
            guard next.map({ $0 == commit.first }) ?? true else {
                throw damaged("the entries before \(commit.first) are missing")
            }
            next = commit.last.next
        case .end(let count):
            guard count == self.count, try take(1) == nil else {
                throw damaged("something is behind its end mark")
            }
            isAtEnd = true
        case .start, .check, .recorded: break
        }
        guard log != nil else { throw damaged("its first section does not name a log") }
    }

    private var cut: HistoryError {
        HistoryError(
            code: .cut,
            message: """
                The history \(path) is cut: it ends without an end mark, \
                \(next.map { "before entry \($0)" } ?? "before its entries"). Copy or export it again.
                """)
    }

    private func damaged(_ reason: String) -> HistoryError {
        HistoryError(
            code: .damaged,
            message: """
                The history \(path) can't be used from section \(count + 1) on\
                \(next.map { " (entry \($0))" } ?? ""): \(reason). Copy or export it again.
                """)
    }
}
