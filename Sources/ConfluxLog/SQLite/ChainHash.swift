import ConfluxVocabulary

/// The hash that a log on disk keeps with a commit. It covers the commit and all commits before it.
///
/// It is BLAKE2b with 32 bytes of output. The input is the commit's bytes. The key is the hash before
/// it, then first number, last number and epoch, 8 bytes each, little-endian.
public struct ChainHash: Hashable, Sendable, CustomStringConvertible {
    private static let keyBytes = Digest.byteCount + 3 * 8

    private let digest: Digest

    private init(_ digest: Digest) {
        self.digest = digest
    }

    /// Reads 32 bytes as they are in the file; nil for another number of bytes.
    package init?(_ stored: UnsafeRawBufferPointer) {
        guard let digest = Digest(stored) else { return nil }
        self.digest = digest
    }

    /// Parses 64 hexadecimal digits; nil for anything else.
    public init?(_ text: some StringProtocol) {
        guard let digest = Digest(text) else { return nil }
        self.digest = digest
    }

    /// The 32 bytes, as they are in the file.
    package var bytes: [UInt8] { digest.bytes }

    /// Calls a function with the 32 bytes.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        digest.withBytes(body)
    }

    /// All bits zero: replaces a hash that is lost. No commit follows it.
    static let lost = ChainHash(.zero)

    /// The hash with which a log's chain begins: a hash of the log's id, without a key.
    package static func genesis(of log: LogID) -> ChainHash {
        Array("conflux log chain \(log)".utf8).withUnsafeBytes { ChainHash(Digest(hashing: $0)) }
    }

    /// The hash of the next commit. Takes time linear in the commit's bytes.
    package func next(_ commit: LoggedCommit) -> ChainHash {
        withUnsafeTemporaryAllocation(byteCount: Self.keyBytes, alignment: 8) { key in
            withBytes { key.copyMemory(from: $0) }
            let place = key.baseAddress?.advanced(by: Digest.byteCount)
            place?.storeBytes(of: commit.first.rawValue.littleEndian, as: UInt64.self)
            place?.storeBytes(
                of: commit.last.rawValue.littleEndian, toByteOffset: 8, as: UInt64.self)
            place?.storeBytes(
                of: commit.epoch.rawValue.littleEndian, toByteOffset: 16, as: UInt64.self)
            return commit.bytes.withUnsafeBytes {
                ChainHash(Digest(hashing: $0, key: UnsafeRawBufferPointer(key)))
            }
        }
    }

    /// 64 lower-case hexadecimal digits.
    public var description: String { digest.description }
}

/// A commit's last number and its hash. If you keep an anchor outside the log, you can check later whether
/// the log still has the same entries up to that number.
public struct LogAnchor: Hashable, Sendable, CustomStringConvertible {
    /// The last number of the commit.
    public let number: SequenceNumber
    /// The commit's hash.
    public let hash: ChainHash

    init(_ number: SequenceNumber, _ hash: ChainHash) {
        self.number = number
        self.hash = hash
    }

    /// Parses `NUMBER:HASH`; nil for anything else.
    public init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.allSatisfy({ 48...57 ~= $0 }),
            let number = UInt64(parts[0]), number <= Int64.max, let hash = ChainHash(parts[1])
        else { return nil }
        self.init(SequenceNumber(number), hash)
    }

    /// `NUMBER:HASH`.
    public var description: String { "\(number):\(hash)" }
}
