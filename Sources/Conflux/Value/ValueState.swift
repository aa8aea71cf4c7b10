import Observation
import Synchronization

/// A state that is a value under a lock, so that it is read cheaply on any thread: a ``Model``'s, and
/// that of a ``Storage``.
///
/// Only ``ModelState`` and ``StorageState`` conform. It is a protocol so that ``Store`` can be extended
/// for it.
public protocol ValueHolder: State where Self: ValueState<Value> {
    /// What is held.
    associatedtype Value: Sendable

    /// Changes a value by an action, or refuses the action and leaves the value as it is.
    ///
    /// Called on copies, on any thread.
    ///
    /// - Returns: What it did in detail, where there is middleware and the action says so; nil if it did
    ///   nothing.
    /// - Throws: Why the action is refused.
    func _reduce(
        _ value: inout Value, _ action: Action, _ context: ActionContext
    ) throws -> [StorageChange]?
}

extension ValueHolder {
    /// The state, as what it is whatever its actions are.
    var asValue: ValueState<Value> { self }
}

/// A value that changes by actions alone.
///
/// It is guarded by a lock that is held while it is read or changed, so that reading is cheap and legal
/// on any thread. Observers are called outside of it, by the thread that serves the store's lane. All else is
/// immutable or atomic.
public class ValueState<Value: Sendable>: @unchecked Sendable {
    @usableFromInline let value: Mutex<Value>

    /// How often the value was changed; raised under the lock.
    private let version = Atomic<UInt64>(0)
    /// What happens and changes nothing.
    let activities = Sink<any Sendable>()
    private let observers = Mutex<[any ValueObserver<Value>]>([])
    /// Spares a commit without observers the lock.
    private let hasObservers = Atomic(false)
    /// Who tracks which parts.
    private let registrar: ObservationRegistrar
    private let tracking: ValueTracking<Value>

    init(value: Value) {
        self.value = Mutex(value)
        registrar = ObservationRegistrar()
        tracking = ValueTracking(registrar)
    }

    /// Reads under the lock. The body must not touch a store.
    @inlinable
    public final func _read<Part>(_ body: (Value) -> Part) -> Part {
        read(ThreadMark.current, body)
    }

    /// Reads under the lock, on the thread that has the mark.
    @inlinable
    final func read<Part>(
        _ mark: UnsafeMutablePointer<ThreadMark>, _ body: (Value) -> Part
    ) -> Part {
        if mark.pointee.isInModel { ThreadMark.trapInModel() }
        mark.pointee.isInModel = true
        defer { mark.pointee.isInModel = false }
        return value.withLock { value in
            // A part of the value, which is Sendable, also where its type doesn't say so.
            nonisolated(unsafe) let part = body(value)
            return part
        }
    }

    /// The thread's mark, which says whether it tracks what it reads.
    @usableFromInline
    final func markOfReader() -> UnsafeMutablePointer<ThreadMark> {
        TrackingProbe.read(registrar)
        return ThreadMark.current
    }

    /// Tracks a part that is read after this.
    ///
    /// - Parameter keyPath: Gives the part. A function, so that a read that is not tracked makes no key path.
    @usableFromInline
    @inline(never)
    final func track<Part>(_ keyPath: () -> KeyPath<Value, Part>) {
        if !ThreadMark.current.pointee.isInModel { tracking.track(keyPath(), of: self) }
        // The set of what is tracked may have grown, and hashed all that it has.
        ThreadMark.current.pointee.isTracking = false
    }

    /// The whole value; what key paths of tracked parts begin with.
    final var content: Value { self._read { $0 } }

    /// Changes the value under the lock, and tells nobody.
    ///
    /// - Parameters:
    ///   - isChange: Whether the body has changed it, by what it returns.
    ///   - body: Changes it.
    /// - Returns: What the body returns.
    final func change<Result: Sendable>(
        if isChange: (Result) -> Bool = { _ in true }, _ body: (inout Value) -> Result
    ) -> Result {
        let mark = ThreadMark.outsideModels
        mark.pointee.isInModel = true
        defer { mark.pointee.isInModel = false }
        return value.withLock { value in
            let result = body(&value)
            if isChange(result) { version.add(1, ordering: .relaxed) }
            return result
        }
    }

    /// The value, and how often it was changed until then.
    final func readVersion() -> (value: Value, version: UInt64) {
        readVersion { $0 }
    }

    /// A part of the value, and how often that was changed until then.
    final func readVersion<Part: Sendable>(
        _ part: (Value) -> Part
    ) -> (value: Part, version: UInt64) {
        _read { (part($0), version.load(ordering: .relaxed)) }
    }

    /// Puts another value in the place, and runs a function under the lock. Called in the store's lane;
    /// the function touches no store but by this very function.
    final func exchange(_ other: inout Value, then next: () -> Void) {
        value.withLock { value in
            version.add(1, ordering: .relaxed)
            swap(&value, &other)
            next()
        }
    }

    /// Puts another value in the place, and tells the observers. Called in the store's lane.
    final func replace(_ other: Value) {
        // Let go outside the lock: freeing the old value may be slow.
        var other = other
        change { swap(&$0, &other) }
        tell()
    }

    /// Tells the observers that the value may have changed. Called in the store's lane.
    final func tell() {
        guard hasObservers.load(ordering: .acquiring) else { return }
        for observer in observers.withLock({ $0 }) { observer.look(at: self) }
    }

    /// Tells an observer of every change from now on.
    final func add(_ observer: any ValueObserver<Value>) {
        observers.withLock { observers in
            observers.append(observer)
            hasObservers.store(true, ordering: .releasing)
        }
    }

    final func remove(_ observer: any ValueObserver<Value>) {
        // Let go outside the lock: what it holds is user code's to free.
        _ = observers.withLock { observers in
            let place = observers.firstIndex { $0 === observer }
            let removed = place.map { observers.remove(at: $0) }
            hasObservers.store(!observers.isEmpty, ordering: .releasing)
            return removed
        }
    }
}

/// Told of a value's changes.
protocol ValueObserver<Value>: AnyObject, Sendable {
    associatedtype Value: Sendable

    /// The value may have changed. Called in the store's lane, holding no lock.
    func look(at state: ValueState<Value>)
}
