import Synchronization

/// How to learn that a lane's store ends.
extension Lane {
    /// Runs a function in the lane; drops it if the store is released before.
    final func run(_ body: @escaping @Sendable () -> Void) {
        enqueue(.work { if $0 { body() } }) {
            if !isReleased.load(ordering: .relaxed) { body() }
        }
    }

    /// Calls a function once when the store is released; at once, if it has been.
    ///
    /// - Parameter hook: Called on the releasing thread, holding no lock.
    /// - Returns: The token for ``forgetClose(_:)``; nil if the hook was called.
    @discardableResult
    package final func whenClosed(_ hook: @escaping @Sendable () -> Void) -> Int? {
        let token = hooks.withLock { $0.add(hook, at: .closed) }
        if token == nil { hook() }
        return token
    }

    /// Calls a function once when nothing changes the store any more: it is released, or its node no longer
    /// hosts it. Called in the lane, holding no lock, behind everything that the lane has to do at that time.
    ///
    /// - Parameter hook: Called at once, or as soon as the lane is free, if nothing changes the store now.
    /// - Returns: The token for ``forgetClose(_:)``; nil if the store is over.
    final func whenOver(_ hook: @escaping @Sendable () -> Void) -> Int? {
        let token = hooks.withLock { $0.add(hook, at: .over) }
        if token == nil { enqueue(.work { _ in hook() }, perform: hook) }
        return token
    }

    /// Calls a function once when the store is released and a commit that was under way has
    /// ended; at once, if that has happened.
    ///
    /// - Parameter hook: Called holding no lock.
    /// - Returns: The token for ``forgetClose(_:)``; nil if the hook was called.
    final func whenEnded(_ hook: @escaping @Sendable () -> Void) -> Int? {
        let token = hooks.withLock { $0.add(hook, at: .ended) }
        if token == nil { hook() }
        return token
    }

    /// Ends a registration when the store is released, unless it is ended before.
    ///
    /// - Returns: A disposable that ends it, and leaves nothing behind in the store.
    final func ending(_ registration: AnyDisposable) -> AnyDisposable {
        let token = whenClosed { registration.dispose() }
        return AnyDisposable { [weak self] in
            registration.dispose()
            if let token { self?.forgetClose(token) }
        }
    }

    /// Ends a registration that concerns two stores when either is released, unless it is ended before.
    ///
    /// - Returns: A disposable that ends it, and leaves nothing behind in the stores.
    final func ending(_ registration: AnyDisposable, with other: Lane) -> AnyDisposable {
        let tokens = AtomicReference<(mine: Int?, its: Int?)>((nil, nil))
        let end = AnyDisposable { [weak self, weak other] in
            registration.dispose()
            let (mine, its) = tokens.value
            if let mine { self?.forgetClose(mine) }
            if let its { other?.forgetClose(its) }
        }
        tokens.value = (whenClosed { end.dispose() }, other.whenClosed { end.dispose() })
        // One of the two stores may have been released before its token was stored.
        if end.isDisposed {
            let (mine, its) = tokens.value
            if let mine { forgetClose(mine) }
            if let its { other.forgetClose(its) }
        }
        return end
    }

    /// Forgets a function that was to be called when the store is released.
    package final func forgetClose(_ token: Int) {
        // Released outside the lock: what it captured may run user code.
        _ = hooks.withLock { $0.remove(token) }
    }
}

/// What is to be called when a store ends, by its tokens.
struct EndHooks {
    typealias Hook = @Sendable () -> Void

    /// A way to end.
    enum End {
        /// The store is released.
        case closed
        /// The last commit has ended, and no other can come.
        case ended
        /// Nothing changes the store any more: with `ended`, or before.
        case over
    }

    private var hooks: [Int: (end: End, hook: Hook)] = [:]
    private var count = 0
    private var isClosed = false
    private var hasEnded = false
    /// Whether nothing changes the store any more, although it was not released.
    private var isOver = false

    var isEmpty: Bool { hooks.isEmpty }

    /// Adds a function.
    ///
    /// - Returns: Its token; nil if the end has come.
    mutating func add(_ hook: @escaping Hook, at end: End) -> Int? {
        switch end {
        case .closed where isClosed, .ended where hasEnded, .over where hasEnded || isOver:
            return nil
        case .closed, .ended, .over: break
        }
        count += 1
        hooks[count] = (end, hook)
        return count
    }

    mutating func remove(_ token: Int) -> Hook? { hooks.removeValue(forKey: token)?.hook }

    mutating func takeClosed() -> [Hook] {
        isClosed = true
        return take(.closed)
    }

    mutating func takeEnded() -> [Hook] {
        hasEnded = true
        return take(.ended) + take(.over)
    }

    mutating func watch(isOver: Bool) -> [Hook] {
        self.isOver = isOver
        return isOver ? take(.over) : []
    }

    private mutating func take(_ end: End) -> [Hook] {
        let taken = hooks.filter { $0.value.end == end }
        for token in taken.keys { hooks[token] = nil }
        return taken.values.map(\.hook)
    }
}
