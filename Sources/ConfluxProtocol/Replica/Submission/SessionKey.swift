import ConfluxVocabulary

/// An idempotency key for a program that is run again: all its runs continue one session (rule 11).
///
/// The session's nonce is the first 128 bits of the BLAKE2b hash of the text `conflux session key`, a
/// zero byte, and the key. It is the same in every version and on every machine.
public struct SessionKey: Sendable, Hashable {
    /// The most UTF-8 bytes of a key.
    public static let bytesMax = 256
    /// The key.
    public let text: String

    /// Makes a key.
    ///
    /// - Parameter text: 1 to ``bytesMax`` bytes of UTF-8. For any other text, nil is returned.
    public init?(_ text: String) {
        guard (1...Self.bytesMax).contains(text.utf8.count) else { return nil }
        self.text = text
    }

    /// The nonce of the session.
    public var nonce: Nonce { Nonce(hashOf: "conflux session key\0\(text)") }
}

/// Where a process with a session key continues.
public struct Resumption: Sendable, Hashable {
    /// The counter up to which an earlier process told every outcome.
    public let settled: UInt64
    /// The last counter that was judged. Batches up to it may be cut in any way, but none may reach
    /// beyond it: a batch is judged whole, so its counters above would count as judged, too.
    public let lastCounter: UInt64
}
