import ConfluxVocabulary
import Synchronization

/// Undertakings that are under way together. It ends when it is closed and none of them is left.
final class FlowGroup: Sendable {
    /// What it waits for; the group itself is one as long as it is open.
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

    /// Whether something has ended, or is waited for by this group.
    func covers(_ handle: DispatchHandle) -> Bool {
        guard let identity = handle.openBlock else { return true }
        return members.withLock { $0.contains(identity) }
    }

    /// Waits for one more, unless the group has ended.
    ///
    /// - Returns: Whether it does.
    func add(_ member: AnyObject) -> Bool {
        members.withLock { members in
            if members.isEmpty { return false }
            members.insert(ObjectIdentifier(member))
            return true
        }
    }

    /// Waits no longer for a member. The caller that removes the last one reports the end.
    func remove(_ member: AnyObject) {
        let isOver = members.withLock { members in
            members.remove(ObjectIdentifier(member))
            return members.isEmpty
        }
        if isOver { block.settle(from: 0, with: .ended) }
    }

    /// Lets it end with its last member.
    func close() { remove(self) }
}

extension Outcome {
    /// That of what commits nothing itself.
    static var ended: Outcome {
        .committed(Receipt(log: nil, epoch: .none, sequence: .zero, timestamp: WallClock.now))
    }
}

/// Undertakings that follow each other.
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
