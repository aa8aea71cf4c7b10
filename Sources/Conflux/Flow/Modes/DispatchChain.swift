import Synchronization

/// A dispatch in mode `serial` with all that is chained to it: what comes behind it in that mode waits for
/// the whole chain.
///
/// What is dispatched where its end is told belongs to the chain, whatever the mode, and so does what is
/// chained to that. What follows each other in a chain does so by a series of its own.
final class DispatchChain: Sendable {
    /// Where an end is told: what is dispatched there, until that has been told, belongs to the chain.
    private final class Door: Sendable {
        let chain: DispatchChain
        let isOpen = Atomic(true)

        init(to chain: DispatchChain) { self.chain = chain }
    }

    @TaskLocal private static var door: Door?

    /// What follows each other in this chain.
    let series = FlowSeries()
    private let scope: ObjectIdentifier
    /// The lock under which it was begun. What is dispatched under another one may have to wait for what
    /// that lock pauses, and is no part of the chain.
    private let lock: UInt64?
    /// How much is under way; nothing when the chain has ended.
    private let underWay = Mutex(1)
    private let whole = FlowOperation(after: []) { _ in }

    /// Begins a chain of one dispatch.
    ///
    /// - Parameter scope: Where it is dispatched.
    init(in scope: Scope) {
        self.scope = ObjectIdentifier(scope)
        lock = FlowLock.held(in: scope)?.id
    }

    /// Has a function called once, when all of the chain has ended, by whoever finds out.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        whole.whenEnded(body)
    }

    /// Tells an end, to which something may be chained.
    ///
    /// - Parameters:
    ///   - chain: What that belongs to; nil for none.
    ///   - body: Tells it.
    static func tell(in chain: DispatchChain?, _ body: () -> Void) {
        let door = chain.map { Door(to: $0) }
        $door.withValue(door, operation: body)
        // A task that was begun there goes on outside.
        door?.isOpen.store(false, ordering: .relaxed)
    }

    /// The chain that what is dispatched here belongs to, which then waits for one ``end()`` more.
    static func join(in scope: Scope) -> DispatchChain? {
        guard let door, door.isOpen.load(ordering: .relaxed) else { return nil }
        let chain = door.chain
        guard chain.scope == ObjectIdentifier(scope), chain.lock == FlowLock.held(in: scope)?.id
        else { return nil }
        let isJoined = chain.underWay.withLock { underWay in
            if underWay > 0 { underWay += 1 }
            return underWay > 0
        }
        return isJoined ? chain : nil
    }

    /// One of its dispatches has ended.
    func end() {
        let isOver = underWay.withLock { underWay in
            underWay -= 1
            return underWay == 0
        }
        if isOver { whole.finish() }
    }
}
