import Observation
import Synchronization

/// The Observation module can observe a value store: it tracks the parts that are read by name.
///
/// ```swift
/// withObservationTracking {
///     print(stock.left)
/// } onChange: {
///     print("there are more or fewer")
/// }
/// ```
///
/// A part that is `Equatable` counts as changed when it differs. Any other part, and
/// ``Store/value``, counts as changed after each action that was applied. `onChange` is called
/// once, in the store's lane, holding no lock, when the change is already visible. It may dispatch.
///
/// As with everything that is `Observable`, tracking begins when the tracking function has
/// returned. A change that another thread makes between the reading and that return is reported
/// with the next change of that part. If that matters, track on the thread of the store's executor:
/// with `.mainThread`, on the main thread.
extension Store: Observable where State: ValueHolder {}

/// Finds out whether the thread tracks what it reads, at the cost of one access to thread-local storage.
///
/// The Observation module doesn't say. But while it tracks, it puts the key paths that are read
/// into a set. So each read first reads a key path whose hash function leaves a mark. Without this,
/// each read would have to make a key path, which takes several times as long as the read itself.
/// If the set is used at another time, the mark costs one part that is tracked for nobody.
final class TrackingProbe: Observable, Sendable {
    private struct Marking: Hashable, Sendable {
        func hash(into hasher: inout Hasher) {
            ThreadMark.current.pointee.isTracking = true
        }
    }

    /// A probe and a key path through it. Never released: counting references would be most of the cost of a read.
    // Sendable: a key path is immutable, and what this one holds is Sendable.
    struct Reader: @unchecked Sendable {
        fileprivate let probe = Unmanaged.passRetained(TrackingProbe())
        fileprivate let path: Unmanaged<KeyPath<TrackingProbe, Void>> = Unmanaged.passRetained(
            \TrackingProbe.[Marking()])

        /// Marks the thread if it tracks what it reads.
        ///
        /// - Parameter registrar: The registrar of what will be read; notifying it has no effect.
        func read(_ registrar: ObservationRegistrar) {
            probe._withUnsafeGuaranteedRef { probe in
                path._withUnsafeGuaranteedRef { registrar.access(probe, keyPath: $0) }
            }
        }
    }

    static let shared = Reader()

    private subscript(marking: Marking) -> Void { () }
}

/// The parts of one value that somebody tracks, or tracked until they changed. The key paths of
/// tracked parts lead through this object.
///
/// A store that nobody tracks has nothing to do. A tracker ends with a change, and then tracks anew
/// what it reads. A part that was not read between two of its changes is forgotten.
final class ValueTracking<Root: Sendable>: Observable, Sendable {
    private struct TrackedPart {
        let observer: any Disposable
        /// Whether it was read since its last change.
        var isRead = true
    }

    // Sendable: key paths are immutable.
    private struct Parts: @unchecked Sendable {
        var parts: [PartialKeyPath<Root>: TrackedPart] = [:]
    }

    private let registrar: ObservationRegistrar
    private let content = Mutex(Parts())

    init(_ registrar: ObservationRegistrar) {
        self.registrar = registrar
    }

    /// The root of the key paths of tracked parts. Nobody reads it.
    private var root: Root { preconditionFailure("a tracked part is read of its store") }

    /// Tracks a part that is read next.
    func track<Part, Action>(_ keyPath: KeyPath<Root, Part>, of state: ValueState<Root, Action>) {
        // Key paths are immutable.
        nonisolated(unsafe) let keyPath = keyPath
        let isWhole = keyPath as AnyKeyPath == \Root.self
        let part: (Root) -> ComparedPart<Part> = { root in
            ComparedPart(value: isWhole ? nil : root[keyPath: keyPath] as? any Equatable)
        }
        let isKnown = content.withLock { content in
            content.parts[keyPath]?.isRead = true
            return content.parts[keyPath] != nil
        }
        registrar.access(self, keyPath: path(keyPath))
        if isKnown { return }
        // The part as it is before the read.
        var last = state._read(part)
        let observer = state.add(Observation()) { [unowned self] state in
            let new = part(state.held)
            if last.isSame(as: new) { return }
            last = new
            changed(keyPath)
        }
        let known = content.withLock { content in
            let known = content.parts[keyPath]?.observer
            if known == nil { content.parts[keyPath] = TrackedPart(observer: observer) }
            return known
        }
        // Another thread has tracked it meanwhile.
        if known != nil { observer.dispose() }
    }

    private func path<Part>(_ keyPath: KeyPath<Root, Part>) -> KeyPath<ValueTracking, Part> {
        (\ValueTracking.root).appending(path: keyPath)
    }

    private func changed<Part>(_ keyPath: KeyPath<Root, Part>) {
        // Key paths are immutable.
        nonisolated(unsafe) let keyPath = keyPath
        let forgotten = content.withLock { content -> (any Disposable)? in
            if content.parts[keyPath]?.isRead == true {
                content.parts[keyPath]?.isRead = false
                return nil
            }
            return content.parts.removeValue(forKey: keyPath)?.observer
        }
        forgotten?.dispose()
        registrar.withMutation(of: self, keyPath: path(keyPath)) {}
    }
}

/// A tracked part, as far as it can be compared.
// Sendable: it is a part of the value, which is Sendable.
private struct ComparedPart<Part>: @unchecked Sendable {
    /// Nil if it can't be compared. Then each commit counts as a change.
    let value: (any Equatable)?

    func isSame(as other: ComparedPart) -> Bool {
        guard let value, let other = other.value else { return false }
        return value.equals(other)
    }
}
