import Dispatch

/// Where a function runs: at once, on the main queue, on a queue of yours, or in a context of your
/// own making.
///
/// An executor chooses a place, never an order: a store hands it one run of actions at a time, and
/// a signal one run of values at a time, the next after that has returned. So even a concurrent
/// queue loses and reorders nothing.
///
/// ```swift
/// let store = Store<CounterState>(state: .init(), mutations: .init(), executor: .queue(.global()))
/// signal.observe(on: .mainThread).observe { print($0) }
/// ```
public struct Executor: Sendable {
    /// A function that runs the function it is given, once, at a place and time of its choosing.
    public typealias Context = (@escaping @Sendable () -> Void) -> Void

    // Sendable: a context is Sendable, or called only on its actor, or a client in Swift 5 mode answers for it.
    private enum Place: @unchecked Sendable {
        case immediate
        /// At once on a queue, if nothing is in progress.
        case within(QueueRunner)
        case context(Context)
    }

    private let place: Place
    /// The queue that functions run on; nil if it isn't known, or if its threads never block each other.
    let queue: WorkQueue?

    private init(place: Place, queue: WorkQueue? = nil) {
        self.place = place
        self.queue = queue
    }

    private init(within dispatchQueue: DispatchQueue, _ queue: WorkQueue) {
        self.init(place: .within(QueueRunner(dispatchQueue, queue)), queue: queue)
    }

    /// Makes an executor from a context of your own.
    ///
    /// - Parameter context: Runs each function that it is given exactly once; it may be called on any
    ///   thread, by several threads at once. If it belongs to an actor, it is called on that actor. If it
    ///   drops a function, everything that waits for the function stops: a store on such an executor commits
    ///   nothing more.
    public init(
        @_inheritActorContext _ context:
            @escaping @isolated(any) @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.init(on: context.isolation, vouching(for: context, as: Context.self))
    }

    /// Makes an executor from a context that code of an actor has in a variable.
    ///
    /// - Parameters:
    ///   - context: As in `init(_:)`. It is called on the actor.
    ///   - isolation: The actor of the calling code.
    @_disfavoredOverload
    public init(_ context: @escaping Context, isolation: isolated any Actor = #isolation) {
        self.init(on: isolation, context)
    }

    /// Makes an executor from a context that belongs to an actor, or to none.
    init(on actor: (any Actor)?, _ context: @escaping Context) {
        guard let executor = Executor.of(actor) else {
            self.init(place: .context(context))
            return
        }
        // Only the executor of its actor calls it.
        nonisolated(unsafe) let context = context
        self.init(place: .context { function in executor.run { context(function) } })
    }

    /// Runs functions at once, on the thread that calls `execute(_:)`.
    public static let immediate = Executor(place: .immediate)

    /// Runs functions on the main queue: at once when called there, otherwise later.
    ///
    /// "At once" holds only while nothing that was given to this same executor is running or
    /// waiting; otherwise the function joins the main queue. So the functions given to one value
    /// run in the order given, whichever threads they come from. Each use of `mainThread` makes an
    /// executor of its own: the work of one doesn't delay another.
    ///
    /// Waiting functions are in the main queue, which has no bound.
    public static var mainThread: Executor {
        Executor(within: .main, MainQueue.work)
    }

    /// Runs functions on a queue: at once when called there, otherwise later, in the order of
    /// ``mainThread``.
    ///
    /// ``queue(_:)`` enqueues in any case.
    ///
    /// - Parameter dispatchQueue: Serial or concurrent. It holds the waiting functions, without a
    ///   bound.
    /// - Returns: An executor that keeps the queue alive.
    public static func within(_ dispatchQueue: DispatchQueue) -> Executor {
        Executor(within: dispatchQueue, .of(dispatchQueue))
    }

    /// Adds functions to a queue, even when called on that queue.
    ///
    /// - Parameter dispatchQueue: Serial or concurrent. It holds the waiting functions, without a
    ///   bound.
    /// - Returns: An executor that keeps the queue alive.
    public static func queue(_ dispatchQueue: DispatchQueue) -> Executor {
        if WorkQueue.isGlobal(dispatchQueue) {
            return Executor(place: .context { dispatchQueue.async(execute: $0) })
        }
        let queue = WorkQueue.of(dispatchQueue)
        return Executor(place: .context { queue.add($0, to: dispatchQueue) }, queue: queue)
    }

    /// Runs a function, now or later, as this executor decides.
    ///
    /// - Parameter function: Called once, in the executor's context. If it belongs to an actor, the executor
    ///   has it called on that actor.
    public func execute(
        @_inheritActorContext _ function: @escaping @isolated(any) @Sendable () -> Void
    ) {
        let body = vouching(for: function, as: (@Sendable () -> Void).self)
        guard let executor = Executor.of(function.isolation) else { return run(body) }
        run { executor.run(body) }
    }

    /// Runs a function that belongs to no actor.
    func run(_ function: @escaping @Sendable () -> Void) {
        switch place {
        case .immediate: function()
        case .within(let runner): runner.execute(function)
        case .context(let context): context(function)
        }
    }

    /// Whether functions run at once on the caller's thread, so that a caller may run its own code
    /// in place and needs no function value.
    package var isImmediate: Bool {
        if case .immediate = place { true } else { false }
    }

    /// Whether a function given now would run at once, on the caller's thread. If so, the caller
    /// may run its own code in place of the function, and calls ``end()`` after it.
    @inline(__always)
    func begin() -> Bool {
        switch place {
        case .immediate: true
        case .within(let runner): runner.begin()
        case .context: false
        }
    }

    /// Says that what was begun has returned.
    @inline(__always)
    func end() {
        if case .within(let runner) = place { runner.end() }
    }
}
