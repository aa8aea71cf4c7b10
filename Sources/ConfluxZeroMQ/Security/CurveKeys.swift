import CSodium

/// The public half of a key pair. Everybody may know it: it identifies the holder of the secret
/// half.
public struct CurvePublicKey: Hashable, Sendable, CustomStringConvertible {
    /// 32 bytes.
    package let bytes: [UInt8]

    /// How many bytes a key has.
    static let byteCount = 32
    /// How many characters a key has as text.
    public static let textCount = 40

    package init(bytes: [UInt8]) {
        precondition(bytes.count == Self.byteCount, "a key has \(Self.byteCount) bytes")
        self.bytes = bytes
    }

    /// Reads a key; nil if the text isn't one.
    ///
    /// - Parameter text: 40 characters of [Z85](https://rfc.zeromq.org/spec/32/).
    public init?(_ text: String) {
        guard let bytes = Z85.decode(text) else { return nil }
        self.bytes = bytes
    }

    /// The key in 40 characters of Z85.
    public var description: String { Z85.encode(bytes) }
}

/// The secret half of a key pair, which only its owner may know. Nothing prints it, and its memory
/// is cleared when it is freed.
final class CurveSecret: Sendable {
    // No thread writes to it after `init`, and `deinit` frees it.
    private nonisolated(unsafe) let memory: UnsafeMutablePointer<UInt8>

    /// - Parameter fill: Writes the key: 32 bytes.
    init(_ fill: (UnsafeMutablePointer<UInt8>) -> Void) {
        Sodium.start()
        guard let memory = sodium_malloc(CurvePublicKey.byteCount) else {
            fatalError("there is no memory for a secret key; free some, or raise ulimit -l")
        }
        self.memory = memory.assumingMemoryBound(to: UInt8.self)
        fill(self.memory)
        sodium_mprotect_readonly(memory)
    }

    deinit { sodium_free(memory) }

    var pointer: UnsafePointer<UInt8> { UnsafePointer(memory) }
}

/// The identity of one side of an encrypted connection. Two pairs are equal if their public keys
/// are.
public struct CurveKeyPair: Sendable, Hashable, CustomStringConvertible {
    /// The half that others may know.
    public let publicKey: CurvePublicKey
    let secret: CurveSecret

    /// Makes a new pair from the system's random numbers.
    public static func random() -> CurveKeyPair {
        Sodium.start()
        var publicKey = [UInt8](repeating: 0, count: CurvePublicKey.byteCount)
        let secret = CurveSecret { _ = crypto_box_keypair(&publicKey, $0) }
        return CurveKeyPair(publicKey: CurvePublicKey(bytes: publicKey), secret: secret)
    }

    private init(publicKey: CurvePublicKey, secret: CurveSecret) {
        self.publicKey = publicKey
        self.secret = secret
    }

    /// Makes the pair of a secret key; nil if the text isn't one.
    ///
    /// - Parameter secretText: 40 characters of Z85.
    public init?(secretText: String) {
        guard var bytes = Z85.decode(secretText) else { return nil }
        secret = CurveSecret { $0.update(from: bytes, count: bytes.count) }
        sodium_memzero(&bytes, bytes.count)
        var publicKey = [UInt8](repeating: 0, count: CurvePublicKey.byteCount)
        guard crypto_scalarmult_base(&publicKey, secret.pointer) == 0 else { return nil }
        self.publicKey = CurvePublicKey(bytes: publicKey)
    }

    /// The secret key in 40 characters of Z85. Write it only into a file that nobody but its owner can read.
    public var secretText: String {
        Z85.encode(
            Array(UnsafeBufferPointer(start: secret.pointer, count: CurvePublicKey.byteCount)))
    }

    /// Calls a function with the secret key, 32 bytes that it must not keep.
    package func withSecret<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        body(secret.pointer)
    }

    /// The public key.
    public var description: String { publicKey.description }

    /// Whether both have the same public key.
    public static func == (one: CurveKeyPair, other: CurveKeyPair) -> Bool {
        one.publicKey == other.publicKey
    }

    /// Hashes the public key.
    public func hash(into hasher: inout Hasher) { hasher.combine(publicKey) }
}

enum Sodium {
    private static let state = sodium_init()

    /// Initialises libsodium. Call it before any other function of libsodium.
    static func start() {
        precondition(state >= 0, "libsodium found no source of random numbers")
    }

    /// Makes random bytes.
    static func random(_ count: Int) -> [UInt8] {
        start()
        var bytes = [UInt8](repeating: 0, count: count)
        randombytes_buf(&bytes, count)
        return bytes
    }
}
