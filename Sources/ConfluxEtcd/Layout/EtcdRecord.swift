import ConfluxLog
import ConfluxVocabulary

/// Commits that were appended together: one value in etcd, of one commit or several.
///
/// The format, numbers little-endian: version (1 byte), whether the contents are elsewhere (1), checksum of
/// the rest (8), first number (8), last number (8), epoch (8), hash of the commit before it (32), hash of its
/// last commit (32). Then come the contents, or their place: tag (8), byte count (8), checksum (8).
///
/// The contents have, for each commit: last number (8), byte count (4), and the bytes.
struct EtcdRecord {
    /// The most bytes of one value. A request to etcd may have 1.5 MiB.
    static let valueBytesMax = 1 << 20
    private static let version: UInt8 = 1
    private static let headBytes = 10

    enum Contents {
        case here(Bytes)
        case elsewhere(tag: UInt64, byteCount: UInt64, checksum: UInt64)
    }

    let first: SequenceNumber
    let last: SequenceNumber
    let epoch: Epoch
    let before: ChainHash
    let hash: ChainHash
    let contents: Contents

    /// - Parameters:
    ///   - commits: At least one; each follows the one before it.
    ///   - before: The hash of the commit before them.
    init(_ commits: [LoggedCommit], behind before: ChainHash) {
        first = commits[0].first
        last = commits[commits.count - 1].last
        epoch = commits[0].epoch
        self.before = before
        hash = commits.reduce(before) { $0.next($1) }
        let bytes = Self.encode(commits)
        guard bytes.count > Self.valueBytesMax else {
            contents = .here(bytes)
            return
        }
        let checksum = Checksum.hash(bytes)
        // The tag depends on the contents: a repeated append has the same parts, and any other append has
        // different ones.
        contents = .elsewhere(
            tag: Checksum.hash(hash.description),
            byteCount: UInt64(bytes.count), checksum: checksum)
    }

    static func encode(_ commits: [LoggedCommit]) -> Bytes {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(commits.reduce(0) { $0 + $1.bytes.count + 12 })
        for commit in commits {
            bytes.put(commit.last.rawValue)
            bytes.put(UInt32(commit.bytes.count))
            bytes += commit.bytes
        }
        return bytes[...]
    }

    /// The commits of its contents; nil if the contents are not what was written.
    func commits(in contents: Bytes) -> [LoggedCommit]? {
        var rest = contents
        var commits: [LoggedCommit] = []
        var next = first
        while !rest.isEmpty {
            guard let last = rest.takeNumber(), let count = rest.takeShort(),
                rest.count >= Int(count), last >= next.rawValue
            else { return nil }
            commits.append(
                LoggedCommit(
                    first: next, last: SequenceNumber(last), epoch: epoch,
                    bytes: rest.prefix(Int(count))))
            rest = rest.dropFirst(Int(count))
            next = SequenceNumber(last).next
        }
        return next == last.next ? commits : nil
    }

    var value: Bytes {
        var value = [Self.version, 0]
        if case .here(let bytes) = contents { value.reserveCapacity(bytes.count + 128) }
        // Reserved for the checksum.
        value.put(UInt64(0))
        value.put(first.rawValue)
        value.put(last.rawValue)
        value.put(epoch.rawValue)
        value += before.bytes
        value += hash.bytes
        switch contents {
        case .here(let bytes): value += bytes
        case .elsewhere(let tag, let byteCount, let checksum):
            value[1] = 1
            for number in [tag, byteCount, checksum] { value.put(number) }
        }
        let checksum = Checksum.hash(value[Self.headBytes...])
        withUnsafeBytes(of: checksum.littleEndian) { bytes in
            for (offset, byte) in bytes.enumerated() { value[2 + offset] = byte }
        }
        return value[...]
    }

    /// nil if the value is not what was written.
    init?(_ value: Bytes) {
        var rest = value.dropFirst(2)
        guard value.count > Self.headBytes, value[value.startIndex] == Self.version,
            let checksum = rest.takeNumber(), Checksum.hash(rest) == checksum,
            let first = rest.takeNumber(), let last = rest.takeNumber(),
            let epoch = rest.takeNumber(), let before = rest.takeHash(),
            let hash = rest.takeHash(), first > 0, first <= last
        else { return nil }
        self.first = SequenceNumber(first)
        self.last = SequenceNumber(last)
        self.epoch = Epoch(epoch)
        self.before = before
        self.hash = hash
        if value[value.startIndex + 1] == 0 {
            contents = .here(rest)
        } else {
            guard let tag = rest.takeNumber(), let byteCount = rest.takeNumber(),
                let checksum = rest.takeNumber()
            else { return nil }
            contents = .elsewhere(tag: tag, byteCount: byteCount, checksum: checksum)
        }
    }
}

extension [UInt8] {
    mutating func put(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}

extension Bytes {
    mutating func takeNumber() -> UInt64? { take(8) }

    fileprivate mutating func takeShort() -> UInt32? { take(4).map { UInt32($0) } }

    fileprivate mutating func takeHash() -> ChainHash? {
        guard count >= 32 else { return nil }
        defer { self = dropFirst(32) }
        return prefix(32).withUnsafeBytes { ChainHash($0) }
    }

    private mutating func take(_ bytes: Int) -> UInt64? {
        guard count >= bytes else { return nil }
        defer { self = dropFirst(bytes) }
        return prefix(bytes).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
