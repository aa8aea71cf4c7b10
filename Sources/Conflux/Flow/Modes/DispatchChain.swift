import Synchronization

/// A dispatch in mode `serial` with all that is chained to it: what comes behind it in that mode waits for
/// the whole chain.
///
/// What is dispatched, or begun as an operation, where an end is reported belongs to the chain, whatever the
/// mode, and so does what is chained to that. So does what an operation of the chain dispatches: it may wait
/// for that. The serial parts of a chain follow each other in a series of their own.
final class DispatchChain: Sendable {
    /// Where what is dispatched belongs to a chain: on the thread that reports an end, until that returns; in
    /// an operation and the tasks that it begins, until it ends.
    // Sendable: the mark is only compared.
    private final class Door: @unchecked Sendable {
        let chain: DispatchChain?
        /// Of what the end is reported.
        let generation: FlowGroup?
        let scope: ObjectIdentifier
        /// The only thread that it is open to; nil for all.
        private let mark: UnsafeMutablePointer<ThreadMark>?
        private let isShut = Atomic(false)

        init(
            to chain: DispatchChain?, _ generation: FlowGroup?, of scope: Scope,
            for mark: UnsafeMutablePointer<ThreadMark>?
        ) {
            self.chain = chain
            self.generation = generation
            self.scope = ObjectIdentifier(scope)
            self.mark = mark
        }

        func isOpen(in scope: Scope) -> Bool {
            (mark == nil || mark == ThreadMark.current) && !isShut.load(ordering: .relaxed)
                && self.scope == ObjectIdentifier(scope)
        }

        func shut() { isShut.store(true, ordering: .relaxed) }
    }

    @TaskLocal private static var door: Door?

    /// What is under way of it.
    let steps = FlowGroup()
    /// What follows each other in it.
    let series = FlowSeries()
    /// The lock under which it was begun. What is dispatched under another one may have to wait for what
    /// that lock pauses, and is no part of the chain.
    private let lock: UInt64?

    /// Begins a chain.
    ///
    /// - Parameters:
    ///   - scope: Where it is dispatched.
    ///   - first: Its first step. It ends with its last one.
    init(in scope: Scope, with first: AnyObject) {
        lock = FlowLock.held(in: scope)?.id
        _ = steps.add(first)
        steps.close()
    }

    /// Reports an end, to which something may be chained.
    ///
    /// - Parameters:
    ///   - chain: What that belongs to; nil for none.
    ///   - generation: The generation of what has ended.
    ///   - scope: Where that was dispatched.
    ///   - body: Reports it.
    static func tell(
        in chain: DispatchChain?, _ generation: FlowGroup, of scope: Scope, _ body: () -> Void
    ) {
        let door = Door(to: chain, generation, of: scope, for: ThreadMark.current)
        $door.withValue(door, operation: body)
        door.shut()
    }

    /// Runs an operation.
    ///
    /// - Parameters:
    ///   - chain: What it belongs to; nil for none.
    ///   - scope: Where it was begun.
    ///   - body: The operation.
    static func run(
        in chain: DispatchChain?, of scope: Scope, _ body: @Sendable () async -> Void
    ) async {
        let door = chain.map { Door(to: $0, nil, of: scope, for: nil) }
        await $door.withValue(door, operation: body)
        door?.shut()
    }

    /// Runs code that belongs to no chain.
    static func outside(_ body: () -> Void) {
        if door == nil { body() } else { $door.withValue(nil, operation: body) }
    }

    /// The generation of what brings about what is dispatched here, if that is the end of something.
    static func generation(in scope: Scope) -> FlowGroup? {
        door.flatMap { $0.isOpen(in: scope) ? $0.generation : nil }
    }

    /// The chain that what is dispatched here can belong to.
    static func current(in scope: Scope) -> DispatchChain? {
        guard let door, door.isOpen(in: scope), let chain = door.chain,
            chain.lock == FlowLock.held(in: scope)?.id
        else { return nil }
        return chain
    }
}
