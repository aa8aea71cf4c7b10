/// The hash of content that somebody may want to replace: 32 bytes of BLAKE2b.
///
/// Equal digests mean equal bytes, also if one side chose them to deceive: nobody can find two contents with the
/// same digest. Replicas vote with digests, and a snapshot is what has the digest that they voted for. Where only
/// accidents matter, there is `Checksum`.
///
/// This is only the value. `ConfluxHashing` computes it, since that takes a C library.
public struct Digest: Hashable, Sendable, CustomStringConvertible {
    /// How many bytes a digest has.
    public static let byteCount = 32

    /// Bytes that need no memory of their own. (A vector of 32 bytes would be aligned to 32, which the memory of a
    /// task is not.)
    private struct Content: Hashable, Sendable, BitwiseCopyable {
        private var first = UInt64(0)
        private var second = UInt64(0)
        private var third = UInt64(0)
        private var fourth = UInt64(0)
    }

    private let content: Content

    /// All bits zero: nothing that is known has this digest.
    package static let zero = Digest { _ in }

    /// Makes a digest of the 32 bytes that a function writes. They are zeros before.
    package init(_ write: (UnsafeMutableRawBufferPointer) -> Void) {
        var content = Content()
        withUnsafeMutableBytes(of: &content) { write($0) }
        self.content = content
    }

    /// Reads 32 bytes; nil for another number of bytes.
    public init?(_ stored: UnsafeRawBufferPointer) {
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

    /// The 32 bytes.
    public var bytes: [UInt8] { withBytes { Array($0) } }

    /// Calls a function with the 32 bytes.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBytes(of: content, body)
    }

    /// 64 lower-case hexadecimal digits.
    public var description: String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}
