import Synchronization

/// Middleware for actions of single types.
///
/// ```swift
/// let interceptor = Interceptor()
/// let wallet = StoreReference(store)
/// interceptor.register(FetchAmount.self) { _ in
///     Task { wallet.store?.dispatch(SetAmount(value: await fetch())) }
///     return .stop          // no reducer needs to hear of it
/// }
/// Scope.current.use(interceptor)
/// ```
///
/// The type is that of the state's `Action`; for a ``ReducedModel`` it is the type for which a reducer is
/// registered. Safe on any thread.
public final class Interceptor: Middleware {
    private struct Handler: Sendable {
        let handle: @Sendable (Any) -> Passage<Any>
    }

    private struct Content {
        var handlers: [ObjectIdentifier: Handler] = [:] {
            didSet { isHandled = [:] }
        }
        /// What ``handles(_:)`` has returned for each type since the handlers changed.
        var isHandled: [ObjectIdentifier: Bool] = [:]
    }

    private let content = Mutex(Content())

    /// Makes an interceptor that lets everything pass.
    public init() {}

    /// Handles the actions of a type, in place of what handled them before.
    ///
    /// - Parameters:
    ///   - type: The type of the actions.
    ///   - handler: Called for each that is dispatched, on the dispatching thread; says what becomes of
    ///     it.
    public func register<Action>(
        _ type: Action.Type, _ handler: @escaping @Sendable (Action) -> Passage<Action>
    ) {
        let erased = Handler { action in
            guard let action = action as? Action else { return .pass }
            switch handler(action) {
            case .pass: return .pass
            case .replace(let other): return .replace(other)
            case .stop: return .stop
            }
        }
        // The former handler is released outside the lock: that may run user code.
        _ = content.withLock {
            $0.handlers.updateValue(erased, forKey: ObjectIdentifier(type))
        }
    }

    /// Lets the actions of a type pass from now on.
    ///
    /// - Parameter type: The type of the actions.
    public func unregister<Action>(_ type: Action.Type) {
        _ = content.withLock { $0.handlers.removeValue(forKey: ObjectIdentifier(type)) }
    }

    /// Asks the handler of the action's type.
    public func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
        if let envelope = dispatch.action as? any ActionEnvelope {
            guard let handler = handler(of: Swift.type(of: envelope.content)) else { return .pass }
            switch handler.handle(envelope.content) {
            case .pass: return .pass
            case .stop: return .stop
            case .replace(let content):
                return (envelope.with(content) as? S.Action).map { .replace($0) } ?? .pass
            }
        }
        guard let handler = handler(of: S.Action.self) else { return .pass }
        switch handler.handle(dispatch.action) {
        case .pass: return .pass
        case .stop: return .stop
        case .replace(let other): return (other as? S.Action).map { .replace($0) } ?? .pass
        }
    }

    private func handler(of type: Any.Type) -> Handler? {
        content.withLock { $0.handlers[ObjectIdentifier(type)] }
    }

    /// Whether it may handle actions of a type.
    func handles<Action>(_ type: Action.Type) -> Bool {
        let identity = ObjectIdentifier(type)
        return content.withLock { content in
            if let known = content.isHandled[identity] { return known }
            let answer = content.handlers[identity] != nil || type is any ActionEnvelope.Type
            content.isHandled[identity] = answer
            return answer
        }
    }
}

/// An action that wraps one of another type.
protocol ActionEnvelope {
    /// The wrapped action.
    var content: Any { get }
    /// The same kind of envelope with another action in it; nil if it can't hold an action of that
    /// type.
    func with(_ content: Any) -> Self?
}
