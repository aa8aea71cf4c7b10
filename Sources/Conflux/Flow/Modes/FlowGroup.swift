import ConfluxVocabulary
import Synchronization

/// Undertakings that are under way together. The group ends when it is closed and none is left.
final class FlowGroup: Sendable {
    /// The members that it waits for. The group itself is one of them as long as it is open.
    private let members: Mutex<Set<ObjectIdentifier>>
    private let block = OutcomeBlock()

    /// Makes a group that is open, and empty.
    init() {
        members = Mutex([])
        _ = block.reserve()
        members.withLock { _ = $0.insert(ObjectIdentifier(self)) }
    }

    /// Its end.
    var handle: DispatchHandle { DispatchHandle(block: block, index: 0) }

    /// Whether the handle's action has ended, or this group waits for it.
    func covers(_ handle: DispatchHandle) -> Bool {
        guard let identity = handle.openBlock else { return true }
        return members.withLock { $0.contains(identity) }
    }

    /// Adds a member to wait for, unless the group has ended.
    ///
    /// - Returns: Whether it was added.
    func add(_ member: AnyObject) -> Bool {
        members.withLock { members in
            if members.isEmpty { return false }
            members.insert(ObjectIdentifier(member))
            return true
        }
    }

    /// Removes a member. The caller that removes the last one reports the end.
    func remove(_ member: AnyObject) {
        let isOver = members.withLock { members in
            members.remove(ObjectIdentifier(member))
            return members.isEmpty
        }
        if isOver { block.settle(from: 0, with: .ended) }
    }

    /// Closes the group, so that it ends with its last member.
    func close() { remove(self) }
}

extension Outcome {
    /// The outcome of an undertaking that commits nothing itself.
    static var ended: Outcome {
        .committed(Receipt(log: nil, epoch: .none, sequence: .zero, timestamp: WallClock.now))
    }
}

/// Undertakings each of which waits for the one before.
final class FlowSeries: Sendable {
    private let last = Mutex<DispatchHandle?>(nil)

    /// Puts an undertaking behind the last one.
    ///
    /// - Returns: What it waits for; nil for the first.
    func add(_ undertaking: DispatchHandle) -> DispatchHandle? {
        last.withLock { last in
            defer { last = undertaking }
            return last
        }
    }
}
