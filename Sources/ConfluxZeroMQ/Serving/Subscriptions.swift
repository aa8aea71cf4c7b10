import ConfluxVocabulary

/// The prefixes to which one peer of a publisher has subscribed. The peer gets the messages that begin with one of
/// them.
///
/// As in libzmq, they are a set: however often a peer repeats a subscription, one cancellation ends it. The peer
/// counts repetitions itself, and cancels a prefix once nobody behind it wants the prefix.
///
/// The memory is bounded. If a prefix has no room, the peer gets everything until it has cancelled as many
/// subscriptions as had no room. It discards what it did not ask for, so it never misses what it asked for.
struct Subscriptions {
    private var prefixes: Set<[UInt8]> = []
    private var heldBytes = 0
    /// How many subscriptions had no room, less the cancellations of prefixes that are not among `prefixes`.
    private var unkeptCount = 0

    /// The most bytes of one peer's prefixes, counting `prefixCost` more for each.
    static let bytesMax = 4_096
    private static let prefixCost = 64

    /// Whether the peer is subscribed to nothing.
    var isEmpty: Bool { prefixes.isEmpty && unkeptCount == 0 }

    /// Whether the peer gets every message.
    private(set) var isToAll = false

    /// Adds a prefix.
    ///
    /// - Parameter prefix: The prefix.
    /// - Returns: Whether the peer may get more messages than before.
    mutating func add(_ prefix: Bytes) -> Bool {
        let prefix = Array(prefix)
        guard !prefixes.contains(prefix) else { return false }
        let wasToAll = isToAll
        let cost = prefix.count + Self.prefixCost
        if heldBytes + cost <= Self.bytesMax {
            prefixes.insert(prefix)
            heldBytes += cost
        } else {
            unkeptCount += 1
        }
        isToAll = wasToAll || unkeptCount > 0 || prefix.isEmpty
        return !wasToAll
    }

    /// Removes a prefix.
    mutating func remove(_ prefix: Bytes) {
        if let former = prefixes.remove(Array(prefix)) {
            heldBytes -= former.count + Self.prefixCost
        } else {
            unkeptCount = max(0, unkeptCount - 1)
        }
        isToAll = unkeptCount > 0 || prefixes.contains([])
    }

    /// Whether the peer gets this message.
    func match(_ message: Bytes) -> Bool {
        isToAll || prefixes.contains { message.starts(with: $0) }
    }
}
