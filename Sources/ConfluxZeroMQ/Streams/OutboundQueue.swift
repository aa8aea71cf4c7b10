import Synchronization

/// What waits to go out on one connection (rule 39).
///
/// A message has room where the connection's queue has less than its own bound, and where the peers with
/// its key together have less than what is left of the socket's budget. So who has most is refused first,
/// and whoever has little always finds room: one key fills half of the budget at most, two keys a third
/// each, and so on. Where there are no keys each connection counts for itself.
final class OutboundQueue: Sendable {
    /// The most bytes that wait. *At the bound* a message is lost, as on a connection that breaks, and
    /// asked for again.
    struct Limits: Sendable, Hashable {
        /// For one connection.
        var connection: Int
        /// For all of a socket.
        var all: Int
    }

    /// What waits for all connections of a socket, by the memory that it takes.
    final class Budget: Sendable {
        let bytesMax: Int
        private let byteCount = Atomic<Int>(0)

        init(bytesMax: Int) { self.bytesMax = bytesMax }

        /// What is held.
        var heldBytes: Int { byteCount.load(ordering: .relaxed) }

        func count(_ bytes: Int) { byteCount.add(bytes, ordering: .relaxed) }
    }

    /// What waits for the connections of one key.
    final class Share: Sendable {
        fileprivate let byteCount = Atomic<Int>(0)
    }

    /// What a message costs besides its bytes.
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

    /// More messages than so many bytes can be.
    static func messagesMax(bytesMax: Int) -> Int { bytesMax / messageCost + 1 }

    /// Whether another message may be queued.
    var hasRoom: Bool {
        byteCount.load(ordering: .relaxed) < bytesMax
            && share.byteCount.load(ordering: .relaxed) < budget.bytesMax - budget.heldBytes
    }

    /// A frame of so many bytes is queued.
    func count(_ frameBytes: Int) {
        add(frameBytes + Self.messageCost)
        budget.count(Self.messageCost)
    }

    /// A frame of so many bytes has been sent, or thrown away.
    func uncount(_ frameBytes: Int) {
        add(-frameBytes - Self.messageCost)
        budget.count(-Self.messageCost)
    }

    private func add(_ bytes: Int) {
        byteCount.add(bytes, ordering: .relaxed)
        share.byteCount.add(bytes, ordering: .relaxed)
    }
}
