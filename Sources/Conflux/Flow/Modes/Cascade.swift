import Synchronization

/// A dispatch in mode `serial`, or a serial operation, with all that follows from it. Later serial
/// undertakings wait for the whole cascade.
///
/// What is dispatched, or begun as an operation, where an end is reported belongs to the cascade,
/// in whatever mode. So does what follows from that, and so does what an operation of the cascade
/// dispatches: the operation may wait for that. The serial parts of a cascade follow each other in
/// a series of their own.
final class Cascade: Sendable {
    /// Marks the code whose dispatches belong to a cascade: on the thread that reports an end,
    /// until the report returns; in an operation and in the tasks that it begins, until the
    /// operation ends.
    // Sendable: the mark is only compared.
    private final class Door: @unchecked Sendable {
        let cascade: Cascade?
        /// The generation of the undertaking whose end is reported.
        let generation: FlowGroup?
        let scope: ObjectIdentifier
        /// The only thread for which it is open; nil for all threads.
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

    /// Its undertakings that are under way.
    let members = FlowGroup()
    /// The series of its serial undertakings.
    let series = FlowSeries()
    /// The lock under which it was begun. What is dispatched under another lock may have to wait
    /// for what that lock pauses, so it is no part of the cascade.
    private let lock: UInt64?

    /// Begins a cascade.
    ///
    /// - Parameters:
    ///   - scope: Where it begins.
    ///   - first: Its first undertaking. The cascade ends with its last one.
    init(in scope: Scope, with first: AnyObject) {
        lock = FlowLock.held(in: scope)?.id
        _ = members.add(first)
        members.close()
    }

    /// Reports an end. What the body dispatches follows from that.
    ///
    /// - Parameters:
    ///   - cascade: The cascade of what has ended; nil for none.
    ///   - generation: The generation of what has ended.
    ///   - scope: Where that was dispatched.
    ///   - body: Reports the end.
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
    ///   - cascade: The operation's cascade; nil for none.
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

    /// The generation of what is dispatched here, if an end is being reported here.
    static func generation(in scope: Scope) -> FlowGroup? {
        door.flatMap { $0.isOpen(in: scope) ? $0.generation : nil }
    }

    /// The cascade that dispatches made here can belong to.
    static func current(in scope: Scope) -> Cascade? {
        guard let door, door.isOpen(in: scope), let cascade = door.cascade,
            cascade.lock == FlowLock.held(in: scope)?.id
        else { return nil }
        return cascade
    }
}
