import CSodium
import ConfluxVocabulary

/// The hash that a log on disk keeps with a commit. It covers the commit and all commits before it.
///
/// It is BLAKE2b with 32 bytes of output. The input is the commit's bytes. The key is the hash before
/// it, then first number, last number and epoch, 8 bytes each, little-endian.
public struct ChainHash: Hashable, Sendable, CustomStringConvertible {
    private static let byteCount = 32
    private static let keyBytes = byteCount + 3 * 8

    /// Bytes that need no memory of their own. (A vector of 32 bytes would be aligned to 32, which the memory of a task
    /// is not.)
    private struct Content: Hashable, Sendable, BitwiseCopyable {
        private var first = UInt64(0)
        private var second = UInt64(0)
        private var third = UInt64(0)
        private var fourth = UInt64(0)

        init() {}
    }

    private let content: Content

    /// Reads 32 bytes as they are in the file; nil for another number of bytes.
    package init?(_ stored: UnsafeRawBufferPointer) {
        guard stored.count == Self.byteCount else { return nil }
        content = stored.loadUnaligned(as: Content.self)
    }

    /// Parses 64 hexadecimal digits; nil for anything else.
    public init?(_ text: some StringProtocol) {
        let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        guard text.utf8.count == 2 * Self.byteCount, digits.count == text.utf8.count else {
            return nil
        }
        let bytes = (0..<Self.byteCount).map { UInt8(digits[2 * $0] << 4 | digits[2 * $0 + 1]) }
        content = bytes.withUnsafeBytes { $0.loadUnaligned(as: Content.self) }
    }

    private init(of input: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer) {
        Self.start()
        var hash = Content()
        let code = withUnsafeMutableBytes(of: &hash) { hash in
            crypto_generichash(
                hash.baseAddress!.assumingMemoryBound(to: UInt8.self), hash.count,
                input.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt64(input.count),
                key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count)
        }
        precondition(code == 0, "BLAKE2b of \(input.count) bytes: \(code)")
        content = hash
    }

    private init() {
        content = Content()
    }

    /// The 32 bytes, as they are in the file.
    package var bytes: [UInt8] { withBytes { Array($0) } }

    /// Calls a function with the 32 bytes.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: content, body)
    }

    /// All bits zero: replaces a hash that is lost. No commit follows it.
    static let lost = ChainHash()

    /// The hash with which a log's chain begins: a hash of the log's id, without a key.
    package static func genesis(of log: LogID) -> ChainHash {
        Array("conflux log chain \(log)".utf8).withUnsafeBytes {
            ChainHash(of: $0, key: UnsafeRawBufferPointer(start: nil, count: 0))
        }
    }

    /// The hash of the next commit. Takes time linear in the commit's bytes.
    package func next(_ commit: LoggedCommit) -> ChainHash {
        withUnsafeTemporaryAllocation(byteCount: Self.keyBytes, alignment: 8) { key in
            withBytes { key.copyMemory(from: $0) }
            let place = key.baseAddress?.advanced(by: Self.byteCount)
            place?.storeBytes(of: commit.first.rawValue.littleEndian, as: UInt64.self)
            place?.storeBytes(
                of: commit.last.rawValue.littleEndian, toByteOffset: 8, as: UInt64.self)
            place?.storeBytes(
                of: commit.epoch.rawValue.littleEndian, toByteOffset: 16, as: UInt64.self)
            return commit.bytes.withUnsafeBytes {
                ChainHash(of: $0, key: UnsafeRawBufferPointer(key))
            }
        }
    }

    /// 64 lower-case hexadecimal digits.
    public var description: String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    private static let state = sodium_init()

    /// Initialises libsodium, which chooses the fastest code for this processor.
    private static func start() {
        precondition(state >= 0, "libsodium found no source of random numbers")
    }
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
