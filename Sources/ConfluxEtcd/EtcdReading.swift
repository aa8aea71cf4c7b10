import ConfluxLog
import ConfluxVocabulary

/// Reads a log on etcd, for its owner and for its readers. Every read is linearizable.
///
/// Confined to one thread at a time.
final class EtcdReading {
    /// The most values in one answer, for commits and for parts.
    private static let recordsMax = 256
    private static let partsMax = 8
    /// About how many bytes of commits to request at once.
    private static let pageBytes = 4 << 20

    let client: any EtcdStore
    /// The id of a new log; random unless etcd is imitated.
    let newLog: LogID?
    let layout: EtcdLayout
    /// How many records to request at once before any has arrived, or after a request for many was too large.
    private static let windowUsual = 8
    /// How many records to request at once, depending on the size of those that came before.
    private var window = windowUsual
    /// The average size of the last records; 0 before any has arrived.
    private var usualBytes = 0

    init(_ settings: EtcdLogSettings) throws(EtcdFailure) {
        if let imitation = settings.imitation {
            client = imitation.connect()
        } else {
            client = try EtcdClient(settings)
        }
        newLog = settings.imitation?.log
        layout = EtcdLayout(settings.address)
    }

    /// Reads the state of etcd at one moment.
    ///
    /// - Parameters:
    ///   - operations: What to read.
    ///   - attempt: What is tried, as the beginning of a sentence.
    /// - Returns: The answer.
    /// - Throws: `failed`, `unreachable`, `denied`.
    func look(
        _ operations: [EtcdTransaction.Operation], _ attempt: @autoclosure () -> String
    ) throws(LogError) -> EtcdAnswer {
        do throws(EtcdFailure) {
            return try lookAgain(operations)
        } catch {
            throw LogError(error, attempt())
        }
    }

    private func lookAgain(
        _ operations: [EtcdTransaction.Operation]
    ) throws(EtcdFailure) -> EtcdAnswer {
        do throws(EtcdFailure) {
            return try client.transact(EtcdTransaction(success: operations))
        } catch {
            // A read changes nothing, so `mayHaveHappened` does not apply.
            throw EtcdFailure(error.kind, error.message)
        }
    }

    // MARK: Commits

    /// Like `LogReader.read(from:through:limitBytes:)`.
    func read(
        from: SequenceNumber, through last: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> [LoggedCommit] {
        var found = EtcdFinding(from: from, through: last, limitBytes: limitBytes)
        while !found.isDone {
            let (floor, pairs) = try page(from: found.next, limitBytes: found.leftBytes)
            found.rise(to: floor.first)
            guard !found.isDone else { break }
            guard !pairs.isEmpty else {
                found.miss(through: last)
                break
            }
            for pair in pairs where !found.isDone {
                guard let record = record(pair) else {
                    let end = EtcdLayout.number(endingIn: pair.key) ?? found.next.rawValue
                    found.damage(through: SequenceNumber(max(end, found.next.rawValue)))
                    break
                }
                guard record.last >= found.next else { continue }
                guard record.first <= found.next else {
                    found.miss(through: SequenceNumber(record.first.rawValue - 1))
                    break
                }
                let commits = try commits(of: record)
                if commits == nil {
                    // The record may have been discarded while it was read.
                    found.rise(to: try self.floor().first)
                    guard !found.isDone, record.last >= found.next else { continue }
                }
                found.take(commits, of: record)
            }
        }
        return try found.commits()
    }

    /// The record whose last entry has this number, and its commits; nil if there is no intact one.
    func commits(
        endingAt last: SequenceNumber
    ) throws(LogError) -> (record: EtcdRecord, commits: [LoggedCommit])? {
        let answer = try look(
            [.read(.key(layout.record(last)))], "Reading entry \(last) of the log")
        guard let pair = answer.pair(0), let record = record(pair),
            let commits = try commits(of: record)
        else { return nil }
        return (record, commits)
    }

    func floor() throws(LogError) -> EtcdFloor {
        let answer = try look([.read(.key(layout.floor))], "Reading where the log begins")
        guard let pair = answer.pair(0), let floor = EtcdFloor(pair.value, at: pair.key) else {
            throw .damagedKey(layout.floor)
        }
        return floor
    }

    private func record(_ pair: EtcdPair) -> EtcdRecord? {
        guard let record = EtcdRecord(pair.value),
            EtcdLayout.number(endingIn: pair.key) == record.last.rawValue
        else { return nil }
        return record
    }

    /// nil if the contents are not what was written.
    private func commits(of record: EtcdRecord) throws(LogError) -> [LoggedCommit]? {
        switch record.contents {
        case .here(let bytes): return record.commits(in: bytes)
        case .elsewhere(let tag, let byteCount, let checksum):
            let folder = layout.largeParts(record.last, tag)
            guard let bytes = try parts(folder, from: 0, count: byteCount),
                Checksum.hash(bytes[...]) == checksum
            else { return nil }
            return record.commits(in: bytes[...])
        }
    }

    /// Reads some records, from the one that contains a number, and the log's floor at the same moment.
    ///
    /// Records may be far larger than those before them. If the answer is too large or too slow, fewer
    /// records are requested, now or in the next call.
    ///
    /// `limitBytes`: About the most bytes of the records together.
    func page(
        from next: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> (floor: EtcdFloor, pairs: [EtcdPair]) {
        let attempt = "Reading the log from entry \(next)"
        var count = window
        if usualBytes > 0 { count = min(count, limitBytes / usualBytes + 1) }
        var answer: EtcdAnswer?
        while answer == nil {
            do throws(EtcdFailure) {
                answer = try lookAgain([
                    .read(.key(layout.floor)),
                    .read(layout.records(from: next), limit: count),
                ])
            } catch {
                let isMany = count > Self.windowUsual
                let isTooMuch = error.kind == .tooLarge || error.kind == .unreachable
                guard isTooMuch, count > 1 else { throw LogError(error, attempt) }
                count = isMany ? Self.windowUsual : count / 2
                window = count
                // The cause may be that no member answers at all.
                guard isMany || error.kind == .tooLarge else { throw LogError(error, attempt) }
            }
        }
        guard let answer, answer.pairs.count == 2, let floor = answer.pair(0),
            let first = EtcdFloor(floor.value, at: floor.key)
        else { throw .damagedKey(layout.floor) }
        let sizes = answer.pairs[1].map(\.value.count)
        if let largest = sizes.max(), largest > 0 {
            window = min(max(Self.pageBytes / largest, 1), Self.recordsMax, 2 * window)
            usualBytes = max(1, sizes.reduce(0, +) / sizes.count)
        }
        return (first, answer.pairs[1])
    }

    // MARK: Parts

    /// Reads bytes that are stored in parts.
    ///
    /// - Parameters:
    ///   - folder: The prefix of the parts' keys.
    ///   - offset: The offset of the first byte to read.
    ///   - count: How many bytes to read.
    /// - Returns: The bytes; nil if they are missing, or not what was written.
    /// - Throws: `failed`, `unreachable`, `denied`.
    func parts(
        _ folder: String, from offset: UInt64, count: UInt64
    ) throws(LogError) -> [UInt8]? {
        var bytes: [UInt8] = []
        var position = offset
        while UInt64(bytes.count) < count {
            let left = Int(clamping: count) - bytes.count
            let range = EtcdRange(
                first: EtcdLayout.part(folder, endingAt: position + 1), end: EtcdRange.after(folder)
            )
            let answer = try look(
                [.read(range, limit: min(1 + left / EtcdPart.usualBytes, Self.partsMax))],
                "Reading a part of the log")
            guard let pairs = answer.pairs.first, !pairs.isEmpty else { return nil }
            for pair in pairs where UInt64(bytes.count) < count {
                guard let end = EtcdLayout.number(endingIn: pair.key),
                    let part = EtcdPart.bytes(pair.value, endingAt: end),
                    UInt64(part.count) <= end, end - UInt64(part.count) <= position, position < end
                else { return nil }
                bytes += part.suffix(Int(end - position))
                position = end
            }
        }
        return Array(bytes.prefix(Int(clamping: count)))
    }
}

/// A value that is a part of larger data: a checksum (8 bytes), and the bytes.
enum EtcdPart {
    /// The size of most parts.
    static let usualBytes = 256 << 10

    static func value(_ bytes: Bytes, endingAt end: UInt64) -> Bytes {
        var value: [UInt8] = []
        value.reserveCapacity(bytes.count + 8)
        value.put(checksum(bytes, end))
        value += bytes
        return value[...]
    }

    /// nil if the value is not what was written at this place.
    static func bytes(_ value: Bytes, endingAt end: UInt64) -> Bytes? {
        var rest = value
        guard let sum = rest.takeNumber(), sum == checksum(rest, end) else { return nil }
        return rest
    }

    private static func checksum(_ bytes: Bytes, _ end: UInt64) -> UInt64 {
        var hasher = ChecksumHasher()
        hasher.update(end)
        hasher.update(bytes)
        return hasher.finish()
    }
}

/// The progress of a read of commits.
private struct EtcdFinding {
    private(set) var next: SequenceNumber
    private let last: SequenceNumber
    private let limitBytes: Int
    private var found: [LoggedCommit] = []
    private var byteCount = 0
    private var isFull = false
    private var fault: LogError?

    init(from next: SequenceNumber, through last: SequenceNumber, limitBytes: Int) {
        self.next = next
        self.last = last
        self.limitBytes = limitBytes
    }

    /// How many bytes may still be read.
    var leftBytes: Int { max(0, limitBytes - byteCount) }

    var isDone: Bool { isFull || fault != nil || next > last }

    /// Takes note of a higher floor: entries below it were discarded, perhaps during this read.
    mutating func rise(to floor: SequenceNumber) {
        guard next < floor else { return }
        if found.isEmpty { next = floor } else { isFull = true }
    }

    mutating func miss(through end: SequenceNumber) {
        fault = .damaged(next, end, "missing")
    }

    mutating func damage(through end: SequenceNumber) {
        fault = .damaged(next, end, "its bytes are not those that were written")
    }

    mutating func take(_ commits: [LoggedCommit]?, of record: EtcdRecord) {
        guard let commits else { return damage(through: record.last) }
        for commit in commits where commit.last >= next {
            byteCount += commit.bytes.count
            guard found.isEmpty || byteCount <= limitBytes, commit.first <= last else {
                isFull = true
                return
            }
            found.append(commit)
            next = commit.last.next
        }
    }

    /// - Throws: `damaged` if the first commit can't be read.
    func commits() throws(LogError) -> [LoggedCommit] {
        if let fault, found.isEmpty { throw fault }
        return found
    }
}

extension LogError {
    static func damagedKey(_ key: String) -> LogError {
        LogError(
            .damaged,
            "The key \(key) is missing, or its value is not what a sequencer wrote. Restore etcd from "
                + "a backup.")
    }
}
