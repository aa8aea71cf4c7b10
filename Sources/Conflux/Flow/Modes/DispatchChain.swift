import Synchronization

/// A dispatch in mode `serial` with all that is chained to it: what comes behind it in that mode waits for
/// the whole chain.
///
/// What is dispatched where its end is reported belongs to the chain, whatever the mode, and so does what
/// is chained to that. The parts of a chain follow each other in a series of their own.
final class DispatchChain: Sendable {
    /// Where an end is reported: what is dispatched there, on that thread and until the report returns,
    /// belongs to the chain. A task that is begun there does not.
    // Sendable: the mark is only compared.
    private final class Door: @unchecked Sendable {
        let chain: DispatchChain?
        /// Of what it is the end.
        let generation: UInt64
        let scope: ObjectIdentifier
        private let mark = ThreadMark.current
        private let isShut = Atomic(false)

        init(to chain: DispatchChain?, _ generation: UInt64, of scope: Scope) {
            self.chain = chain
            self.generation = generation
            self.scope = ObjectIdentifier(scope)
        }

        /// Whether the caller is where the end is reported.
        func isOpen(in scope: Scope) -> Bool {
            mark == ThreadMark.current && !isShut.load(ordering: .relaxed)
                && self.scope == ObjectIdentifier(scope)
        }

        func shut() { isShut.store(true, ordering: .relaxed) }
    }

    @TaskLocal private static var door: Door?

    /// What follows each other in this chain.
    let series = FlowSeries()
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
        lock = FlowLock.held(in: scope)?.id
    }

    /// Has a function called once, when all of the chain has ended, on the thread that finds out.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        whole.whenEnded(body)
    }

    /// Tells an end, to which something may be chained.
    ///
    /// - Parameters:
    ///   - chain: What that belongs to; nil for none.
    ///   - generation: The generation of what has ended.
    ///   - scope: Where that was dispatched.
    ///   - body: Tells it.
    static func tell(
        in chain: DispatchChain?, _ generation: UInt64, of scope: Scope, _ body: () -> Void
    ) {
        let door = Door(to: chain, generation, of: scope)
        $door.withValue(door, operation: body)
        door.shut()
    }

    /// The generation of what brings about what is dispatched here, if that is the end of something.
    static func generation(in scope: Scope) -> UInt64? {
        door.flatMap { $0.isOpen(in: scope) ? $0.generation : nil }
    }

    /// The chain that what is dispatched here belongs to, which then waits for one ``end()`` more.
    static func join(in scope: Scope) -> DispatchChain? {
        guard let door, door.isOpen(in: scope), let chain = door.chain,
            chain.lock == FlowLock.held(in: scope)?.id
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
