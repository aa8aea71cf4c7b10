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
/// A function that belongs to an actor, such as a closure or a method of a main-actor class, runs on that
/// actor: at once if it is the main actor and the value is sent there, and otherwise soon after. Any
/// other function must be `@Sendable`. In the language mode of Swift 5, functions run where the value is
/// sent, and the compiler checks nothing.
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
            // It is Sendable, or expects to be called on the thread on which the producer sends.
            nonisolated(unsafe) let send = send
            return Subscription(observation, to: start(observation) { send($0) })
        }
    }

    /// Makes a signal from a producer.
    ///
    /// - Parameter producer: Called at each observation, on the observing thread, or on the actor that it
    ///   belongs to. What it returns is disposed once, when the observation is; for
    ///   `observe(duringScopeOf:_:)` at the latest when the producer sends after the object is gone.
    public init(
        @_inheritActorContext _ producer:
            @escaping @isolated(any) @Sendable (_ send: @escaping @Sendable (Value) -> Void)
            -> any Disposable
    ) {
        self.init(on: producer.isolation, vouching(for: producer, as: Producer.self))
    }

    /// Makes a signal from a producer that code of an actor has in a variable.
    ///
    /// - Parameters:
    ///   - producer: Called at each observation, on the actor.
    ///   - isolation: The actor of the calling code.
    @_disfavoredOverload
    public init(_ producer: @escaping Producer, isolation: isolated any Actor = #isolation) {
        self.init(on: isolation, producer)
    }

    /// Makes a signal from a producer that belongs to an actor, or to none.
    init(on actor: (any Actor)?, _ producer: @escaping Producer) {
        // Its actor's executor calls it, or, if it belongs to none, it may be called anywhere.
        let produce = vouching(
            for: producer,
            as: (@Sendable (@escaping @Sendable (Value) -> Void) -> any Disposable).self)
        self.init { observation, send in
            let sendIfActive: @Sendable (Value) -> Void = { value in
                if observation.isActive { send(value) } else { observation.close() }
            }
            guard let executor = Executor.of(actor) else { return produce(sendIfActive) }
            let production = LateDisposable()
            executor.run {
                if observation.isActive { production.become(produce(sendIfActive)) }
            }
            return production
        }
    }

    /// Observes the values. May be called on any thread, even inside an observer; the value being sent at the
    /// time doesn't reach the new observer.
    ///
    /// - Parameter observer: Called with each value, holding no lock. If it belongs to an actor, it is called on
    ///   that actor. Otherwise it is called on the thread that sends the value, in that thread's scope, or through
    ///   ``observe(on:)`` on its executor. Where several threads send to a sink or a
    ///   variable at once, one of them may call the observers for the others. Calls come one at a time and in
    ///   one order for signals of a sink, a variable or a constant; of several observers the first to observe
    ///   is the first to be called. A variable's latest value comes on this thread, before this returns, unless
    ///   the observer belongs to an actor on which it can't be called at once.
    /// - Returns: A disposable that ends the observation. Releasing it ends nothing.
    @discardableResult
    public func observe(
        @_inheritActorContext _ observer: @escaping @isolated(any) @Sendable (Value) -> Void
    ) -> any Disposable {
        begin(
            Observation(), on: observer.isolation,
            vouching(for: observer, as: (@Sendable (Value) -> Void).self))
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
    ///   - observer: As in `observe(_:)`. If it captures the object, that lives on.
    /// - Returns: A disposable that ends the observation before the object's end.
    @_disfavoredOverload
    @discardableResult
    public func observe(
        duringScopeOf object: AnyObject,
        @_inheritActorContext _ observer: @escaping @isolated(any) @Sendable (Value) -> Void
    ) -> any Disposable {
        withExtendedLifetime(object) {
            begin(
                Observation(owner: object), on: observer.isolation,
                vouching(for: observer, as: (@Sendable (Value) -> Void).self))
        }
    }

    /// Begins an observation.
    ///
    /// - Parameters:
    ///   - observation: Says for how long.
    ///   - actor: The actor that the observer belongs to; nil if it may be called anywhere.
    ///   - observer: Called with each value.
    /// - Returns: A disposable that ends the observation.
    func begin(
        _ observation: Observation, on actor: (any Actor)?, _ observer: @escaping (Value) -> Void
    ) -> any Disposable {
        on(actor).source(observation, observer)
    }

    /// A signal that sends on an actor, or, with nil, this signal.
    private func on(_ actor: (any Actor)?) -> Signal {
        Executor.of(actor).map { observe(on: $0) } ?? self
    }

    /// Makes a signal of this signal's values, transformed by a function.
    ///
    /// - Parameter transform: Called for each value and each observer, where the value is sent. If it belongs
    ///   to an actor, it is called on that actor, and the signal sends there.
    /// - Returns: A signal that starts this one at each observation.
    @_disfavoredOverload
    public func map<Result>(
        @_inheritActorContext _ transform: @escaping @isolated(any) @Sendable (Value) -> Result
    ) -> Signal<Result> {
        map(
            on: transform.isolation,
            vouching(for: transform, as: (@Sendable (Value) -> Result).self))
    }

    func map<Result>(
        on actor: (any Actor)?, _ transform: @escaping (Value) -> Result
    ) -> Signal<Result> {
        .of { [source = on(actor).source] observation, send in
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

    /// The same values. Observers that need to know it learn when nothing changes a store any more.
    func ending(with lane: Lane) -> Signal {
        .of { [source] observation, send in
            let production = source(observation, send)
            guard let end = observation.sourceEnd, let token = lane.whenOver(end) else {
                return production
            }
            return AnyDisposable(on: nil) {
                production.dispose()
                lane.forgetClose(token)
            }
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
            let line = Lane(executor: executor, scope: nil, waitingMax: .max)
            @Sendable func post(_ body: @escaping @Sendable () -> Void) {
                line.putInLine(.work { _ in body() }, ThreadMark.current)
            }
            observation.passEnd { post($0) }
            // The observer chose where it is called, and each value is with one thread at a time.
            nonisolated(unsafe) let send = send
            return source(observation) { value in
                // One thread at a time has the value.
                nonisolated(unsafe) let value = value
                post { if observation.isActive { send(value) } }
            }
        }
    }
}

// `source` never changes. Values reach observers on any thread, hence the condition. The functions in it are
// Sendable, or called only on their actors, or a client in Swift 5 mode answers for where they run.
extension Signal: @unchecked Sendable where Value: Sendable {}
