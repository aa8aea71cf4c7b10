/// The scope and the flow lock of a sender, for observers that another thread calls.
struct SenderContext: Sendable {
    private let scope: Scope
    private let lock: FlowLock?

    /// The context of the current code.
    static var current: SenderContext {
        SenderContext(scope: .current, lock: FlowLock.held)
    }

    /// Runs a function in this context, binding only what isn't bound already.
    func run<Result>(_ body: () -> Result) -> Result {
        if Scope.current === scope, FlowLock.held === lock { return body() }
        return scope.run { FlowLock.$held.withValue(lock, operation: body) }
    }
}
