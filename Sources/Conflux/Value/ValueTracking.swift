import Observation
import Synchronization

/// A value store is observed by the Observation module: what is read of it by name is tracked.
///
/// ```swift
/// withObservationTracking {
///     print(stock.left)
/// } onChange: {
///     print("there are more or fewer")
/// }
/// ```
///
/// A part that is `Equatable` counts as changed when it differs, any other part, and ``Store/value``, after
/// each action that was applied. `onChange` is called once, in the store's lane, holding no lock, when the
/// change is visible already; it may dispatch.
///
/// As with everything that is `Observable`, tracking begins when the tracking function has returned. A change
/// that another thread makes between its reading and its return is reported with the next change of that part;
/// where that matters, track on the thread of the store's executor, as the main thread is for `.mainThread`.
extension Store: Observable where State: ValueHolder {}

/// The state answers for its stores: key paths of what is tracked lead through it.
extension ValueState: Observable {}

/// Finds out whether the thread tracks what it reads, at the price of one look at thread-local storage.
///
/// The Observation module doesn't say. But while it tracks it puts the key paths that are read into a set. So a
/// key path whose hash leaves a mark is read first. Without it each read would have to make a key path, which
/// takes several times as long as the read itself. A mark that is left at another time, since the set is used
/// elsewhere, costs one part that is tracked for nobody.
final class TrackingProbe: Observable, Sendable {
    private struct Marking: Hashable, Sendable {
        func hash(into hasher: inout Hasher) {
            ThreadMark.current.pointee.isTracking = true
        }
    }

    // Sendable: a key path is immutable, and what stands in this one is Sendable.
    private struct Content: @unchecked Sendable {
        let probe = Unmanaged.passRetained(TrackingProbe())
        let path: Unmanaged<KeyPath<TrackingProbe, Void>> = Unmanaged.passRetained(
            \TrackingProbe.[Marking()])
    }

    /// Never released: to count references would be most of a read's price.
    private static let content = Content()

    private subscript(marking: Marking) -> Void { () }

    /// Marks the thread if it tracks what it reads.
    ///
    /// - Parameter registrar: The registrar of what will be read; notifying it has no effect.
    static func read(_ registrar: ObservationRegistrar) {
        content.probe._withUnsafeGuaranteedRef { probe in
            content.path._withUnsafeGuaranteedRef { registrar.access(probe, keyPath: $0) }
        }
    }
}

/// The parts of one value that somebody tracks, or did until they changed.
///
/// It begins to look at the value with the first part that is tracked, so that a store that nobody tracks has
/// nothing to do. Trackers end with a change, and track anew what they read then; a part that was not read
/// between two of its changes is forgotten.
final class ValueTracking<Root: Sendable>: ValueObserver {
    // Sendable: key paths are immutable, and what stands here is touched under the lock alone.
    private struct Content: @unchecked Sendable {
        var parts: [PartialKeyPath<Root>: any TrackedPart<Root>] = [:]
        /// The parts that were read since they changed last.
        var read: Set<PartialKeyPath<Root>> = []
        var isLooking = false
    }

    private let registrar: ObservationRegistrar
    private let content = Mutex(Content())

    init(_ registrar: ObservationRegistrar) {
        self.registrar = registrar
    }

    /// Tracks a part, which is read after this.
    func track<Part>(_ keyPath: KeyPath<Root, Part>, of state: ValueState<Root>) {
        // A part as it is now: it is read after this.
        let part = ComparedPart(keyPath, of: state)
        registrar.access(state, keyPath: part.path)
        let added: any TrackedPart<Root> = part
        let isFirst = content.withLock { content in
            let keyPath = added.keyPath
            content.read.insert(keyPath)
            if content.parts[keyPath] == nil { content.parts[keyPath] = added }
            defer { content.isLooking = true }
            return !content.isLooking
        }
        if isFirst { state.add(self) }
    }

    func look(at state: ValueState<Root>) {
        let parts = content.withLock { Array($0.parts.values) }
        for part in parts where part.update(with: state) {
            let forgotten = content.withLock { content -> (any TrackedPart<Root>)? in
                if content.read.remove(part.keyPath) != nil { return nil }
                return content.parts.removeValue(forKey: part.keyPath)
            }
            part.tell(registrar, of: state)
            // Let go outside the lock: what it holds is the user's.
            withExtendedLifetime(forgotten) {}
        }
    }
}

/// A part that is tracked.
private protocol TrackedPart<Root>: AnyObject, Sendable {
    associatedtype Root: Sendable
    var keyPath: PartialKeyPath<Root> { get }
    /// Whether the part has changed, as far as can be told. Called in the lane.
    func update(with state: ValueState<Root>) -> Bool
    /// Tells those that track the part. Called in the lane.
    func tell(_ registrar: ObservationRegistrar, of state: ValueState<Root>)
}

// Sendable: all but `last` is immutable; that is written before others see the part, and then in the lane alone.
private final class ComparedPart<Root: Sendable, Part>: TrackedPart, @unchecked Sendable {
    private let part: KeyPath<Root, Part>
    let path: KeyPath<ValueState<Root>, Part>
    /// *Use*: what the part was; nil if it can't be compared.
    private var last: (any Equatable)?

    init(_ part: KeyPath<Root, Part>, of state: ValueState<Root>) {
        self.part = part
        path = (\ValueState<Root>.content).appending(path: part)
        let isWhole = part as AnyKeyPath == \Root.self
        last = isWhole ? nil : state._read { $0[keyPath: part] as? any Equatable }
    }

    var keyPath: PartialKeyPath<Root> { part }

    func update(with state: ValueState<Root>) -> Bool {
        guard let last else { return true }
        func isSame<Value: Equatable>(_ old: Value, _ new: Part) -> Bool { old == new as? Value }
        let new = state._read { $0[keyPath: part] }
        if isSame(last, new) { return false }
        self.last = new as? any Equatable
        return true
    }

    func tell(_ registrar: ObservationRegistrar, of state: ValueState<Root>) {
        registrar.withMutation(of: state, keyPath: path) {}
    }
}
