/// Where the functions run that a program gives to observe, bind, map and dispose with.
///
/// **The rule.** A function that belongs to an actor runs on that actor. Any other function is
/// `@Sendable`, and runs where its caller is.
///
/// **Problem.** A closure that code of an actor writes may use the actor's state. A caller on another
/// thread must neither call it there nor refuse it, and it must not wait.
///
/// **Design.** Such a parameter is an `@isolated(any) @Sendable` function, and a closure inherits the actor of
/// the code that writes it. So the compiler checks what the closure captures, and the value says which
/// actor it belongs to. The caller hands the call to the executor of that actor (``Executor/of(_:)``).
/// That executor runs the call at once if it can.
///
/// Clients in the language mode of Swift 5 don't have this check: they get the overloads of
/// `Swift5.swift`.

/// A function, as a function of a type that doesn't say to which actor it belongs.
///
/// The compiler lets only asynchronous code call an `@isolated(any)` function. The caller of the result
/// answers for where it is called.
///
/// - Parameters:
///   - function: A function. It is not changed.
///   - type: The same type, without `@isolated(any)` or with `@Sendable`. Neither changes how the function is called.
/// - Returns: The same function.
func vouching<Given, Wanted>(for function: Given, as type: Wanted.Type) -> Wanted {
    unsafeBitCast(function, to: type)
}

extension Executor {
    /// Runs functions on an actor.
    ///
    /// - Parameter actor: The actor that functions belong to; nil for functions that belong to none.
    /// - Returns: For the main actor ``mainThread``, which runs a function at once if nothing stands
    ///   before it. Any other actor runs functions soon after, in tasks. Nil for no actor.
    static func of(_ actor: (any Actor)?) -> Executor? {
        guard let actor else { return nil }
        if actor === MainActor.shared { return .mainThread }
        return Executor { function in
            Task { await actor.run(function) }
        }
    }
}

extension Executor {
    /// The actor of the present code, if that can be told: the main actor, on the main queue.
    static var actorOfCaller: (any Actor)? { MainQueue.isCurrent ? MainActor.shared : nil }
}

extension Actor {
    fileprivate func run(_ function: @Sendable () -> Void) {
        function()
    }
}
