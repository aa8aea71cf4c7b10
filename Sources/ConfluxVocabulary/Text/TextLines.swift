/// The lines of a text file, as people and their editors write them.
///
/// Every file that Conflux reads line by line is divided here. A line ends with a line feed, or with a carriage return
/// and a line feed. The last line needs no end. A byte order mark at the beginning is not a part of the first line.
package enum TextLines {
    /// A line that is not UTF-8.
    package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        /// The line's number, from 1.
        package let line: Int
        /// Where the line is not UTF-8.
        package let fault: InvalidUTF8

        /// The place: `line 2: byte 0xE9 at offset 3 is not UTF-8`.
        package var description: String { "line \(line): \(fault)" }
    }

    /// The byte order mark in UTF-8.
    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Leaves out the byte order mark, if the text begins with one.
    ///
    /// - Parameter bytes: The beginning of a text.
    /// - Returns: The bytes after the mark.
    package static func afterMark(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        bytes.starts(with: mark) ? bytes.dropFirst(mark.count) : bytes
    }

    /// Leaves out the carriage return before a line feed.
    ///
    /// - Parameter bytes: The bytes before a line feed, or at the end of the file.
    /// - Returns: The line.
    package static func withoutReturn(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes
    }

    /// Divides a text into lines. An empty line after the last line feed is none.
    ///
    /// - Parameter bytes: The whole text.
    /// - Returns: The lines, without their ends.
    package static func bytes(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        let lines = afterMark(bytes[...])
            .split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map(withoutReturn)
        return lines.last?.isEmpty == true ? lines.dropLast() : lines
    }

    /// Divides a text into lines, as ``bytes(_:)`` does.
    ///
    /// - Parameter bytes: The whole text.
    /// - Returns: The lines, without their ends.
    /// - Throws: ``Fault`` for the first line that is not UTF-8.
    package static func read(_ bytes: [UInt8]) throws(Fault) -> [String] {
        var lines: [String] = []
        for line in Self.bytes(bytes) {
            do throws(InvalidUTF8) {
                lines.append(try String(utf8: line))
            } catch {
                throw Fault(line: lines.count + 1, fault: error)
            }
        }
        return lines
    }
}
