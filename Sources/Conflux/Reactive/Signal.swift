/// A stream of values, pushed to its observers.
///
/// A signal is a recipe: each observation starts its producer anew. The signals of a ``Sink``, a
/// ``Variable`` and a ``Constant`` send every value once, in one order, to all their observers.
///
/// ```swift
/// let sink = Sink<Int>()
/// sink.signal.map { "Value is \($0)" }.observe { print($0) }
/// sink.send(value: 100)  // prints "Value is 100"
/// ```
///
/// Observers run on the sending thread, unless ``observe(on:)`` says otherwise, and hold no lock:
/// an observer may send, observe and dispose. After its disposal an observer isn't called again,
/// even if a value was on its way to it through an executor. Only a call that has begun on another
/// thread completes.
///
/// The functions given to a signal are not `@Sendable`: code of the main actor may pass closures and
/// methods of its own. The compiler then doesn't check on which thread they run. If values may come
/// from other threads, observe with `observe(on: .mainThread)`.
public struct Signal<Value> {
    /// A function that starts to send, and returns what ends that.
    ///
    /// It may call the function it is given at once, later, on any thread, but not on several at a
    /// time if observers rely on an order.
    public typealias Producer =
        (_ send: @escaping @Sendable (Value) -> Void) -> any Disposable

    /// Starts to send to a function for as long as the observation is active. What it returns ends
    /// the observation too.
    typealias Source = (Observation, _ send: @escaping (Value) -> Void) -> any Disposable

    private let source: Source

    /// Makes a signal of a source.
    static func of(_ source: @escaping Source) -> Signal {
        Signal(source: source, ())
    }

    private init(source: @escaping Source, _: Void) {
        self.source = source
    }

    /// Makes a signal from a producer that asks whether the observation is active.
    ///
    /// - Parameter start: What it returns is disposed once, when the observation ends.
    init(
        start:
            @escaping (Observation, _ send: @escaping @Sendable (Value) -> Void) -> any Disposable
    ) {
        source = { observation, send in
            // The observing code chose the thread: the one on which the producer sends.
            nonisolated(unsafe) let send = send
            return Subscription(observation, to: start(observation) { send($0) })
        }
    }

    /// Makes a signal from a producer.
    ///
    /// - Parameter producer: Called at each observation. What it returns is disposed once, when the
    ///   observation is; for ``observe(duringScopeOf:_:)`` at the latest when the producer sends
    ///   after the object is gone.
    public init(_ producer: @escaping Producer) {
        self.init { observation, send in
            producer { value in
                if observation.isActive { send(value) } else { observation.close() }
            }
        }
    }

    /// Observes the values. May be called on any thread, even inside an observer; the value being sent at the
    /// time doesn't reach the new observer.
    ///
    /// - Parameter observer: Called with each value on the thread that sends it, in that thread's scope and
    ///   holding no lock; through ``observe(on:)`` on its executor. Where several threads send to a sink or a
    ///   variable at once, one of them may call the observers for the others. Calls come one at a time and in
    ///   one order for signals of a sink, a variable or a constant; of several observers the first to observe
    ///   is the first to be called. A variable's latest value comes on this thread, before this returns.
    /// - Returns: A disposable that ends the observation. Releasing it ends nothing.
    @discardableResult
    public func observe(_ observer: @escaping (Value) -> Void) -> any Disposable {
        source(Observation(), observer)
    }

    /// Observes the values for as long as an object lives.
    ///
    /// From the object's `deinit` on nothing is delivered, and the returned disposable is disposed.
    /// The observer and what it captures are released, and the producer's own disposable disposed,
    /// at the next value. Each further observation of the same source looks at two of its observers
    /// and releases those whose object is gone.
    ///
    /// - Parameters:
    ///   - object: Not retained.
    ///   - observer: As in ``observe(_:)``. If it captures the object, that lives on.
    /// - Returns: A disposable that ends the observation before the object's end.
    @discardableResult
    public func observe(
        duringScopeOf object: AnyObject, _ observer: @escaping (Value) -> Void
    ) -> any Disposable {
        withExtendedLifetime(object) { source(Observation(owner: object), observer) }
    }

    /// Makes a signal of this signal's values, transformed by a function.
    ///
    /// - Parameter transform: Called for each value and each observer, where the value is sent.
    /// - Returns: A signal that starts this one at each observation.
    public func map<Result>(_ transform: @escaping (Value) -> Result) -> Signal<Result> {
        .of { [source] observation, send in
            source(observation) { send(transform($0)) }
        }
    }

    /// Makes a signal of this signal's values, transformed by a function, without those that
    /// become nil.
    func compactMap<Result>(_ transform: @escaping (Value) -> Result?) -> Signal<Result> {
        .of { [source] observation, send in
            source(observation) { if let result = transform($0) { send(result) } }
        }
    }

    /// Makes a signal that sends on an executor.
    ///
    /// Values keep their order on every executor, also on a concurrent queue: while one is being
    /// delivered, the next ones wait. Waiting values have no bound, like the queues behind
    /// executors: a sender that waited for a thread that waits for it would never continue. For a
    /// slow observer that must not buffer much, use ``values``.
    ///
    /// - Parameter executor: Where observers are called.
    /// - Returns: A signal that starts this one at each observation.
    public func observe(on executor: Executor) -> Signal {
        if executor.isImmediate { return self }
        return .of { [source] observation, send in
            let mailbox = Mailbox(executor: executor, observation: observation, send: send)
            return source(observation) { mailbox.post($0) }
        }
    }
}

// `source` never changes. Values reach observers on any thread, hence the condition. The code that
// passes functions to a signal answers for where they run.
extension Signal: @unchecked Sendable where Value: Sendable {}
