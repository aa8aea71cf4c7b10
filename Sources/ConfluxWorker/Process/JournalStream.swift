import ConfluxVocabulary
import Foundation

/// The stream of systemd's journal that a process writes to.
///
/// The journal adds the time to each line, and reads the line's priority from its beginning: `<4>` is a warning. It
/// keeps the line without this prefix, so that `journalctl -p warning` finds it.
package enum JournalStream {
    /// Whether a descriptor is the journal's stream.
    ///
    /// The variable alone does not tell: a process inherits it from the session in which it was started, and may
    /// write to a file or a pipe.
    ///
    /// - Parameters:
    ///   - descriptor: Where lines are written.
    ///   - variables: The process's environment. systemd sets `JOURNAL_STREAM` to the stream's device and inode, as
    ///     decimal numbers with a colon between them.
    /// - Returns: false also if the descriptor can't be examined.
    package static func reads(
        _ descriptor: Int32, variables: [String: String] = ProcessInput.variables
    ) -> Bool {
        guard let stream = variables["JOURNAL_STREAM"] else { return false }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return false }
        return stream == "\(status.st_dev):\(status.st_ino)"
    }

    /// Marks each line of a text with its priority.
    ///
    /// - Parameters:
    ///   - text: One line or several.
    ///   - level: The level of all of them.
    /// - Returns: The marked lines.
    package static func marked(_ text: String, _ level: EventLevel) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { "<\(level.priority)>\($0)" }.joined(separator: "\n")
    }
}

extension EventLevel {
    /// The priority in syslog's numbers.
    fileprivate var priority: Int {
        switch self {
        case .info: 6
        case .warning: 4
        case .error: 3
        }
    }
}

extension Timestamp {
    /// The present time of this machine's clock.
    package static var current: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// ISO 8601 in UTC, to the millisecond: `2026-05-01T06:30:00.250Z`.
    package var iso8601: String {
        var bytes: [UInt8] = []
        var (seconds, rest) = rawValue.quotientAndRemainder(dividingBy: 1_000_000_000)
        // Before 1970, the fraction of a second counts forwards, too.
        if rest < 0 { (seconds, rest) = (seconds - 1, rest + 1_000_000_000) }
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        for (number, count, mark) in [
            (parts.tm_year + 1_900, 4, "-"), (parts.tm_mon + 1, 2, "-"), (parts.tm_mday, 2, "T"),
            (parts.tm_hour, 2, ":"), (parts.tm_min, 2, ":"), (parts.tm_sec, 2, "."),
            (Int32(rest / 1_000_000), 3, "Z"),
        ] as [(Int32, Int, Character)] {
            bytes.append(digits: UInt64(number), atLeast: count)
            bytes.append(mark.asciiValue ?? 0)
        }
        return String(checkedUTF8: bytes)
    }
}

extension [UInt8] {
    /// Appends a number in decimal digits.
    ///
    /// - Parameters:
    ///   - number: The number.
    ///   - count: The least digits; zeros come before the number.
    package mutating func append(digits number: UInt64, atLeast count: Int = 1) {
        let begin = self.count
        var rest = number
        repeat {
            append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0 || self.count - begin < count
        self[begin...].reverse()
    }
}
