/// The keys of the newest HELLOs that a serving socket has answered. A client makes another key for each connection, so
/// a HELLO whose key was seen is a copy of one, and answering it would be wasted arithmetic.
///
/// It keeps eight bytes of each key. A client's key is random, so nobody can make it look like one that was seen.
///
/// Confined to one thread.
final class SeenKeys {
    private var prefixes: Set<UInt64> = []
    /// The same prefixes. Once there are `most`, each takes the place of the oldest.
    private var ring: [UInt64] = []
    private var oldest = 0

    /// The most keys that are kept. *At the bound* the oldest is forgotten, and a copy of its HELLO is answered again.
    static let most = 32_768

    /// Whether a key was seen.
    func contains(_ key: [UInt8]) -> Bool { prefixes.contains(Self.prefix(of: key)) }

    /// Notes a key whose HELLO is answered.
    func add(_ key: [UInt8]) {
        let prefix = Self.prefix(of: key)
        guard prefixes.insert(prefix).inserted else { return }
        if ring.count < Self.most {
            ring.append(prefix)
        } else {
            prefixes.remove(ring[oldest])
            ring[oldest] = prefix
            oldest = (oldest + 1) % Self.most
        }
    }

    private static func prefix(of key: [UInt8]) -> UInt64 {
        key.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
