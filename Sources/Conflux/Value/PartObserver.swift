import Synchronization

/// A value that is observed, whatever its actions are.
protocol ObservedValue<Root>: AnyObject, Sendable {
    associatedtype Root: Sendable

    /// A part of the value, and how often the value had been changed when it was read. The body
    /// runs under the value's lock, and must not touch a store.
    func readVersion<Part: Sendable>(_ part: (Root) -> Part) -> (value: Part, version: UInt64)
    /// Makes an observer look at the value after each change from now on.
    func add(_ observer: any ValueObserver<Root>)
    func remove(_ observer: any ValueObserver<Root>)
}

extension ObservedValue {
    /// The whole value.
    var content: Root { readVersion { $0 }.value }
    var anyContent: any Sendable { content }
    /// How often the value was changed.
    var version: UInt64 { readVersion { _ in }.version }
}

extension Equatable {
    /// Whether a value of any type is of this type and equal.
    func equals(_ other: Any) -> Bool { other as? Self == self }
}

/// Looks at a value.
protocol ValueObserver<Root>: AnyObject, Sendable {
    associatedtype Root: Sendable

    /// The value may have changed. Called in the store's lane, or after its end, holding no lock.
    func look(at value: any ObservedValue<Root>)
}

/// The lane of a value's store, whatever its state's type.
protocol ListenedLane: Sendable {
    /// Runs a function in the lane; drops it if the store is released before.
    func run(_ body: @escaping @Sendable () -> Void)
    /// Calls a function once when the store is released and has committed for the last time.
    func whenEnded(_ hook: @escaping @Sendable () -> Void) -> Int?
    /// Calls a function once when nothing changes the store any more.
    func whenOver(_ hook: @escaping @Sendable () -> Void) -> Int?
    /// Forgets such a function.
    func forgetClose(_ token: Int)
}

extension StoreCore: ListenedLane {
    func run(_ body: @escaping @Sendable () -> Void) {
        inspect { state, _ in
            if state != nil { body() }
        }
    }
}

/// Observes a part of a value: compares it after each commit with what it was, and passes on what
/// has changed.
///
/// Every observer of a value is one of these. The value holds it, and it holds neither the value
/// nor the store. It keeps the part that it saw last, and nothing else of the value.
final class PartObserver<Root: Sendable, Part: Sendable>: ValueObserver {
    typealias Version = (value: Part, version: UInt64)

    /// Which part of the value is observed, and when it counts as changed.
    struct Subject: Sendable {
        /// Reads the part. Called in the lane, holding no lock.
        let read: @Sendable (any ObservedValue<Root>) -> Version
        /// Whether the second reading counts as the same as the first. Called as `read` is.
        let isSame: @Sendable (Part, Part) -> Bool

        /// A part that is read under the value's lock.
        init(
            _ part: @escaping @Sendable (Root) -> Part,
            isSame: @escaping @Sendable (Part, Part) -> Bool
        ) {
            self.init(reading: { $0.readVersion(part) }, isSame: isSame)
        }

        /// A part that is read in another way.
        init(
            reading: @escaping @Sendable (any ObservedValue<Root>) -> Version,
            isSame: @escaping @Sendable (Part, Part) -> Bool
        ) {
            read = reading
            self.isSame = isSame
        }
    }

    /// Gets each change. At the first look it gets what was found, and no old part. Called as looks are.
    typealias Receiver =
        @Sendable (_ value: any ObservedValue<Root>, _ old: Part?, _ new: Part) -> Void

    private let subject: Subject
    private let observation: Observation
    private let receive: Receiver
    private let last: Mutex<Version?>

    /// Makes an observer that is not added to a value yet.
    ///
    /// - Parameters:
    ///   - subject: What is observed.
    ///   - observation: Says for how long.
    ///   - last: What was seen already, if anything.
    ///   - receive: Gets the changes.
    init(
        _ subject: Subject, for observation: Observation = Observation(),
        since last: Version? = nil,
        _ receive: @escaping Receiver
    ) {
        self.subject = subject
        self.observation = observation
        self.last = Mutex(last)
        self.receive = receive
    }

    /// Begins to observe, between two actions.
    ///
    /// - Parameters:
    ///   - value: What to observe.
    ///   - lane: Its lane; nil if the caller works in it.
    /// - Returns: A disposable that ends the observation.
    func begin(at value: any ObservedValue<Root>, in lane: (any ListenedLane)?) -> any Disposable {
        let begin: @Sendable () -> Void = { [self] in
            value.add(self)
            if observation.isActive { look(at: value) }
            // The observation may have ended before it began.
            if !observation.isActive { value.remove(self) }
        }
        if let lane { lane.run(begin) } else { begin() }
        return AnyDisposable { [weak self, weak value] in
            if let self, let value { value.remove(self) }
        }
    }

    func look(at value: any ObservedValue<Root>) {
        guard observation.isActive else { return observation.close() }
        let new = subject.read(value)
        let old = last.withLock { $0 }
        if let old, new.version <= old.version || subject.isSame(old.value, new.value) { return }
        // The replaced value is released outside the lock: that may run user code.
        var replaced: Version? = new
        last.withLock { swap(&$0, &replaced) }
        receive(value, old?.value, new.value)
    }
}
