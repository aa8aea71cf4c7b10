import Synchronization

/// A dispatch in mode `serial` with all that follows from it: later dispatches in that mode wait for the
/// whole cascade.
///
/// What is dispatched, or begun as an operation, where an end is reported belongs to the cascade, whatever the
/// mode, and so does what follows from that. So does what an operation of the cascade dispatches: it may wait
/// for that. The serial parts of a cascade follow each other in a series of their own.
final class Cascade: Sendable {
    /// Where what is dispatched belongs to a cascade: on the thread that reports an end, until that returns; in
    /// an operation and the tasks that it begins, until it ends.
    // Sendable: the mark is only compared.
    private final class Door: @unchecked Sendable {
        let cascade: Cascade?
        /// Of what the end is reported.
        let generation: FlowGroup?
        let scope: ObjectIdentifier
        /// The only thread that it is open to; nil for all.
        private let mark: UnsafeMutablePointer<ThreadMark>?
        private let isShut = Atomic(false)

        init(
            to cascade: Cascade?, _ generation: FlowGroup?, of scope: Scope,
            for mark: UnsafeMutablePointer<ThreadMark>?
        ) {
            self.cascade = cascade
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
    let members = FlowGroup()
    /// What follows each other in it.
    let series = FlowSeries()
    /// The lock under which it was begun. What is dispatched under another one may have to wait for what
    /// that lock pauses, and is no part of the cascade.
    private let lock: UInt64?

    /// Begins a cascade.
    ///
    /// - Parameters:
    ///   - scope: Where it is dispatched.
    ///   - first: Its first undertaking. It ends with its last one.
    init(in scope: Scope, with first: AnyObject) {
        lock = FlowLock.held(in: scope)?.id
        _ = members.add(first)
        members.close()
    }

    /// Reports an end, to which something may follow from it.
    ///
    /// - Parameters:
    ///   - cascade: What that belongs to; nil for none.
    ///   - generation: The generation of what has ended.
    ///   - scope: Where that was dispatched.
    ///   - body: Reports it.
    static func tell(
        in cascade: Cascade?, _ generation: FlowGroup, of scope: Scope, _ body: () -> Void
    ) {
        let door = Door(to: cascade, generation, of: scope, for: ThreadMark.current)
        $door.withValue(door, operation: body)
        door.shut()
    }

    /// Runs an operation.
    ///
    /// - Parameters:
    ///   - cascade: What it belongs to; nil for none.
    ///   - scope: Where it was begun.
    ///   - body: The operation.
    static func run(
        in cascade: Cascade?, of scope: Scope, _ body: @Sendable () async -> Void
    ) async {
        let door = cascade.map { Door(to: $0, nil, of: scope, for: nil) }
        await $door.withValue(door, operation: body)
        door?.shut()
    }

    /// Runs code that belongs to no cascade.
    static func outside(_ body: () -> Void) {
        if door == nil { body() } else { $door.withValue(nil, operation: body) }
    }

    /// The generation of what brings about what is dispatched here, if that is the end of something.
    static func generation(in scope: Scope) -> FlowGroup? {
        door.flatMap { $0.isOpen(in: scope) ? $0.generation : nil }
    }

    /// The cascade that what is dispatched here can belong to.
    static func current(in scope: Scope) -> Cascade? {
        guard let door, door.isOpen(in: scope), let cascade = door.cascade,
            cascade.lock == FlowLock.held(in: scope)?.id
        else { return nil }
        return cascade
    }
}
