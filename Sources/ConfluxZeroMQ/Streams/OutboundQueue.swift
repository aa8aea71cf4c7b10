import ConfluxVocabulary
import Synchronization

/// Counts what is queued for one connection (rule 39).
///
/// A message has room if the connection's queue is below its own bound, and if the connection's key may use more of
/// the socket's budget (see `ShareRule`). So the key that has most is refused first. Without keys each connection
/// counts for itself.
final class OutboundQueue: Sendable {
    /// The most bytes that may be queued. *At the bound* a message is lost, as on a connection that breaks, and the
    /// receiver asks for it again.
    struct Limits: Sendable, Hashable {
        /// For one connection.
        var connection: Int
        /// For all connections of a socket.
        var all: Int
    }

    /// Counts the memory of what is queued for all connections of a socket.
    final class Budget: Sendable {
        let bytesMax: Int
        private let byteCount = Atomic<Int>(0)

        init(bytesMax: Int) { self.bytesMax = bytesMax }

        /// How many bytes are held.
        var heldBytes: Int { byteCount.load(ordering: .relaxed) }

        func count(_ bytes: Int) { byteCount.add(bytes, ordering: .relaxed) }
    }

    /// Counts what is queued for the connections of one key.
    final class Share: Sendable {
        fileprivate let byteCount = Atomic<Int>(0)
    }

    /// How many bytes of memory a message costs besides its own.
    static let messageCost = 256

    private let bytesMax: Int
    private let byteCount = Atomic<Int>(0)
    private let share: Share
    private let budget: Budget

    init(bytesMax: Int, share: Share, budget: Budget) {
        self.bytesMax = bytesMax
        self.share = share
        self.budget = budget
    }

    /// A number of messages that always exceeds this many bytes.
    static func messagesMax(bytesMax: Int) -> Int { bytesMax / messageCost + 1 }

    /// Whether another message may be queued.
    var hasRoom: Bool { hasRoom(below: bytesMax) }

    /// Whether another message may be queued, and the queue is below this many bytes.
    func hasRoom(below bytesMax: Int) -> Bool {
        byteCount.load(ordering: .relaxed) < bytesMax
            && ShareRule.admits(
                1, using: share.byteCount.load(ordering: .relaxed), ofTotal: budget.heldBytes,
                of: budget.bytesMax)
    }

    /// Counts a frame of this many bytes, which is queued.
    func count(_ frameBytes: Int) {
        add(frameBytes + Self.messageCost)
        budget.count(Self.messageCost)
    }

    /// Stops counting a frame of this many bytes, which was sent or discarded.
    func uncount(_ frameBytes: Int) {
        add(-frameBytes - Self.messageCost)
        budget.count(-Self.messageCost)
    }

    private func add(_ bytes: Int) {
        byteCount.add(bytes, ordering: .relaxed)
        share.byteCount.add(bytes, ordering: .relaxed)
    }
}
