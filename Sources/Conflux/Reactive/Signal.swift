/// A stream of values, pushed to whoever observes it.
///
/// A signal is a recipe: each observation starts its producer anew. Those of a ``Sink``, a
/// ``Variable`` and a ``Constant`` send every value once, in one order, to all their observers.
///
/// ```swift
/// let sink = Sink<Int>()
/// sink.signal.map { "Value is \($0)" }.observe { print($0) }
/// sink.send(value: 100)  // prints "Value is 100"
/// ```
///
/// Observers run on the thread that sends, unless ``observe(on:)`` says otherwise, and no lock is
/// held meanwhile: an observer may send, observe and dispose. An observer that has been disposed
/// isn't called again, also when a value was on its way to it through an executor; only a call that
/// has begun on another thread goes on to its end.
public struct Signal<Value> {
    /// A function that starts to send, and returns what ends that.
    ///
    /// It may call the function it is given at once, later, on any thread, but not on several at a
    /// time if observers rely on an order.
    public typealias Producer =
        @Sendable (_ send: @escaping @Sendable (Value) -> Void) -> any Disposable

    /// Starts to send to a function for as long as the observation is active.
    typealias Start =
        @Sendable (Observation, _ send: @escaping @Sendable (Value) -> Void) -> any Disposable

    private let start: Start

    init(start: @escaping Start) {
        self.start = start
    }

    /// Makes a signal from a producer.
    ///
    /// - Parameter producer: Called at each observation. What it returns is disposed once, when the
    ///   observation is; for ``observe(duringScopeOf:_:)`` at the latest when the producer sends
    ///   after the object is gone.
    @preconcurrency
    public init(_ producer: @escaping Producer) {
        start = { observation, send in
            producer { value in
                if observation.isActive { send(value) } else { observation.close() }
            }
        }
    }

    /// Observes the values.
    ///
    /// - Parameter observer: Called with each value, one at a time and in order for signals of a
    ///   sink, a variable or a constant. A variable's latest value comes before this returns.
    /// - Returns: What ends the observation. Letting go of it ends nothing.
    @preconcurrency
    @discardableResult
    public func observe(
        _ observer: @escaping @Sendable (Value) -> Void
    ) -> any Disposable & Sendable {
        let production = Production()
        let observation = Observation()
        production.run(start(observation, observer))
        return Subscription(observation: observation, production: production)
    }

    /// Observes the values for as long as an object lives.
    ///
    /// From the object's `deinit` on nothing is delivered, and the returned disposable is disposed.
    /// The observer and what it captures are released, and the producer's own disposable disposed,
    /// at the next value or the next observation of the same source.
    ///
    /// - Parameters:
    ///   - object: Not retained.
    ///   - observer: As in ``observe(_:)``. If it captures the object, that lives on.
    /// - Returns: What ends the observation before the object's end.
    @preconcurrency
    @discardableResult
    public func observe(
        duringScopeOf object: AnyObject, _ observer: @escaping @Sendable (Value) -> Void
    ) -> any Disposable & Sendable {
        let production = Production()
        let observation = Observation(owner: object, production: production)
        production.run(start(observation, observer))
        return Subscription(observation: observation, production: production)
    }

    /// Makes a signal of the values that a function makes of this signal's values.
    ///
    /// - Parameter transform: Called for each value and each observer, where the value is sent.
    /// - Returns: A signal that starts this one at each observation.
    @preconcurrency
    public func map<Result>(
        _ transform: @escaping @Sendable (Value) -> Result
    ) -> Signal<Result> {
        Signal<Result> { [start] observation, send in
            start(observation) { send(transform($0)) }
        }
    }

    /// Starts to send to a function, for as long as an observation of another signal is active.
    func forward(
        _ observation: Observation, _ send: @escaping @Sendable (Value) -> Void
    ) -> any Disposable {
        start(observation, send)
    }

    /// Makes a signal that sends on an executor.
    ///
    /// Values keep their order on every executor, also on a concurrent queue: while one is being
    /// delivered, the next ones wait. What waits has no bound, like the queues behind executors: a
    /// sender that waited for a thread that waits for it would never go on. A slow observer that
    /// must not hold much is better served by ``values``.
    ///
    /// - Parameter executor: Where observers are called.
    /// - Returns: A signal that starts this one at each observation.
    public func observe(on executor: Executor) -> Signal {
        if executor.isImmediate { return self }
        return Signal { [start] observation, send in
            let mailbox = Mailbox(executor: executor, observation: observation, send: send)
            return start(observation) { mailbox.post($0) }
        }
    }
}

// The stored function is Sendable; values reach observers on any thread, hence the condition.
extension Signal: Sendable where Value: Sendable {}
