import Observation
import Synchronization

/// A state that is a value under a lock, cheap to read on any thread: the state of a ``Model`` or a
/// ``Storage``.
///
/// Only ``ValueState`` conforms. It is a protocol so that ``Store`` can be extended for it.
public protocol ValueHolder: State {
    /// What is held.
    associatedtype Value: Sendable

    /// The state itself, as the class that it is.
    var _state: ValueState<Value, Action> { get }
}

/// The state of a ``ModelStore`` and of a ``Storage``: a value that only actions change.
///
/// A lock is held while the value is read or changed, so that reading is cheap and legal on any thread.
/// Observers are called outside the lock, by the thread that serves the store's lane.
public final class ValueState<Value: Sendable, Action>: ValueHolder, @unchecked Sendable {
    // Sendable: the value is changed in the lane and under its lock, `changes` is used only in the lane, and the
    // rest is immutable or atomic.

    /// Changes a value by an action, or throws why the action is refused.
    ///
    /// Returns what the action did in detail, as far as it says so; nil if it did nothing.
    typealias Reducer = @Sendable (inout Value, Action, ActionContext) throws -> [StorageChange]?

    /// How an action changes the value.
    enum Reduction {
        /// Under the lock, in place: a model's code, which touches no store.
        case inPlace(Reducer)
        /// On a copy, holding no lock: a storage's function, which may do what it likes.
        case onCopy(Reducer)
    }

    // These two come first, so that they are at the same place whatever the value is.
    private let registrar = ObservationRegistrar()
    private let probe = TrackingProbe.shared
    /// Changed in the lane and under the lock. So it is read in the lane, or under the lock.
    @exclusivity(unchecked) @usableFromInline var held: Value
    @usableFromInline let lock = Mutex(())
    /// How often the value was changed; raised under the lock.
    private let changeCount = Atomic<UInt64>(0)
    private let reduction: Reduction
    /// *Use*: what the last commit did, for middleware. Used only in the lane.
    private var changes: [StorageChange] = []
    /// The activities that the store sends.
    let activities = Sink<any Sendable>()
    /// Observers of the value, which look at it in the lane after each change.
    let looks = Broadcaster<Void, Void>(holding: ())
    private let tracking: ValueTracking<Value>

    init(_ value: Value, _ reduction: Reduction) {
        held = value
        self.reduction = reduction
        tracking = ValueTracking(registrar)
    }

    /// The state itself.
    @inlinable
    public var _state: ValueState { self }

    // MARK: Reading

    /// Reads under the lock. The body must not touch a store.
    @inlinable
    public func _read<Part>(_ body: (Value) -> Part) -> Part {
        read(ThreadMark.current, body)
    }

    /// Reads under the lock, on the thread that has the mark.
    @inlinable
    func read<Part>(
        _ mark: UnsafeMutablePointer<ThreadMark>, _ body: (Value) -> Part
    ) -> Part {
        if mark.pointee.isInModel { ThreadMark.trapInModel() }
        mark.pointee.isInModel = true
        defer { mark.pointee.isInModel = false }
        return lock.withLock { _ in
            // A part of the value is Sendable, as the value is, even if the part's type doesn't say
            // so.
            nonisolated(unsafe) let part = body(held)
            return part
        }
    }

    /// A part of the value. Called in the lane.
    ///
    /// - Parameters:
    ///   - path: The part.
    ///   - offset: Where it is in the value, if it is stored there. To read it at its place takes far less time than to
    ///     follow a key path.
    /// - Returns: The part.
    @inlinable
    func part<Part>(_ path: KeyPath<Value, Part>, at offset: Int?) -> Part {
        guard let offset else { return held[keyPath: path] }
        return withUnsafePointer(to: &held) {
            (UnsafeRawPointer($0) + offset).assumingMemoryBound(to: Part.self).pointee
        }
    }

    /// The whole value. Safe on any thread.
    var content: Value { readVersion { $0 }.value }

    /// How often the value was changed.
    var version: UInt64 { changeCount.load(ordering: .relaxed) }

    /// A part of the value, and how often the value had been changed then. Safe on any thread.
    func readVersion<Part>(_ part: (Value) -> Part) -> (value: Part, version: UInt64) {
        _read { (part($0), version) }
    }

    /// The thread's mark, which says whether it tracks what it reads.
    @usableFromInline
    func markOfReader() -> UnsafeMutablePointer<ThreadMark> {
        probe.read(registrar)
        return ThreadMark.current
    }

    /// Tracks a part that is read next.
    ///
    /// - Parameter keyPath: Returns the part's key path. It is a function, so that a read that is
    ///   not tracked makes no key path.
    @usableFromInline
    @inline(never)
    func track<Part>(_ keyPath: () -> KeyPath<Value, Part>) {
        if !ThreadMark.current.pointee.isInModel { tracking.track(keyPath(), of: self) }
        // The set of what is tracked may have grown, and hashed all that it holds.
        ThreadMark.current.pointee.isTracking = false
    }

    // MARK: Changing

    /// Changes a copy of the value by an action, on any thread.
    ///
    /// - Returns: What the action did in detail; nil if it did nothing.
    /// - Throws: Why the action is refused.
    func reduce(
        _ copy: inout Value, _ action: Action, _ context: ActionContext
    ) throws -> [StorageChange]? {
        switch reduction {
        case .onCopy(let reduce): return try reduce(&copy, action, context)
        case .inPlace(let reduce):
            let mark = ThreadMark.outsideModels
            mark.pointee.isInModel = true
            defer { mark.pointee.isInModel = false }
            return try reduce(&copy, action, context)
        }
    }

    /// Commits an action, and notifies the observers if it changed anything. Called in the lane.
    ///
    /// - Returns: What the action did in detail.
    /// - Throws: Why the action is refused; then nothing has changed.
    func commit(_ action: Action, _ context: ActionContext) throws -> [StorageChange] {
        switch reduction {
        case .inPlace(let reduce):
            try change { _ = try reduce(&$0, action, context) }
            tell()
            return []
        case .onCopy(let reduce):
            // Nobody else changes the value meanwhile.
            var copy = content
            guard let changes = try reduce(&copy, action, context) else { return [] }
            replace(copy)
            return changes
        }
    }

    /// Changes the value under the lock, and notifies nobody. If the body throws, it has changed nothing.
    private func change(_ body: (inout Value) throws -> Void) rethrows {
        let mark = ThreadMark.outsideModels
        mark.pointee.isInModel = true
        defer { mark.pointee.isInModel = false }
        try lock.withLock { _ in
            try body(&held)
            changeCount.add(1, ordering: .relaxed)
        }
    }

    /// Exchanges the value with another one, and notifies nobody. Called in the lane.
    func exchange(_ other: inout Value) {
        change { swap(&$0, &other) }
    }

    /// Replaces the value, and notifies the observers. Called in the lane.
    func replace(_ other: Value) {
        // Released outside the lock: freeing the old value may be slow.
        var other = other
        exchange(&other)
        tell()
    }

    // MARK: Observing

    /// Notifies the observers that the value may have changed. Called in the lane.
    func tell() {
        if looks.isObserved { looks.send((), holding: ()) }
    }
}

/// A state that is a value, whatever its type. It may be read on any thread.
protocol ValueReading: AnyObject {
    var anyContent: any Sendable { get }
}

extension ValueState: ValueReading {
    var anyContent: any Sendable { content }
}

extension Equatable {
    /// Whether a value of any type is of this type and equal.
    func equals(_ other: Any) -> Bool { other as? Self == self }
}

extension ValueState: ChangeKeeping {
    func takeChanges() -> [StorageChange] {
        defer { changes = [] }
        return changes
    }
}

extension ValueState {
    /// Changes the value by the actions.
    public struct Mutations: Conflux.Mutations {
        /// Commits an action outside any store's lane, at sequence number zero and the present time. A refused
        /// action changes nothing.
        ///
        /// Dispatch to the store to change its value: a change made here at the same time may be lost.
        ///
        /// - Parameters:
        ///   - action: What happens.
        ///   - state: The state.
        public func commit(action: Action, state: ValueState) {
            _ = try? state.commit(action, ActionContext(timestamp: WallClock.now))
        }

        /// Commits an action in the store's lane.
        public func _perform(
            action: Action, state: ValueState, context: () -> ActionContext
        ) throws {
            state.changes = try state.commit(action, context())
        }
    }
}

/// A model, or a storage's value, that handles events: each becomes an action of the state.
///
/// ```swift
/// extension Screen: EventHandling {
///     static var events: EventHandlers<StorageCommit<Screen>> {
///         EventHandlers().on(LoggedIn.self) { event in
///             StorageCommit { $0.user = event.user }
///         }
///     }
/// }
/// ```
extension ValueState: EventHandling where Value: EventHandling, Action == Value.Action {
    /// The events that the value handles, and how.
    public static var events: EventHandlers<Action> { Value.events }
}

extension State {
    /// What the state is called in messages.
    package static var title: String {
        (Self.self as? any ValueHolder.Type)?.valueTitle ?? String(describing: Self.self)
    }
}

extension ValueHolder {
    fileprivate static var valueTitle: String {
        let kind = Action.self == StorageCommit<Value>.self ? "StorageState" : "ModelState"
        return "\(kind)<\(Value.self)>"
    }
}
