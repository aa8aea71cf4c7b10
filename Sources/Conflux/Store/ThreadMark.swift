import Foundation

/// What the current thread is in the middle of.
///
/// Two rules need it. A thread that works for a lane never waits for another lane, or two could
/// wait for each other. And a thread inside a model's code holds that store's lock, so that
/// touching a store from there would lock for ever; it traps instead.
///
/// The functions between `begin` and `end` never suspend, so a mark stays with its thread.
@usableFromInline
struct ThreadMark {
    /// How many lanes' user code the thread is in; a signal's delivery to its observers counts as
    /// one.
    @usableFromInline var lanes = 0
    /// Whether the thread is in a model's `check`, `apply` or key-path read.
    @usableFromInline var isInModel = false
    /// Whether the thread puts a snapshot into a state.
    @usableFromInline var isRestoring = false
    /// Whether dispatches of others wait for this thread: what it sends off must not make it wait.
    var isNeeded = false
    /// Whether it lets go what others dispatched.
    var isLettingGo = false

    /// Whether the thread may wait until a line is shorter.
    var mayWait: Bool { lanes == 0 && !isNeeded }

    @usableFromInline
    init() {}

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let failure = pthread_key_create(&key) { mark in
            #if canImport(Darwin)
                mark.deallocate()
            #else
                mark?.deallocate()
            #endif
        }
        precondition(failure == 0, "no thread-specific key is left: \(failure)")
        return key
    }()

    /// The current thread's mark; valid on this thread alone, as long as it lives.
    @usableFromInline
    static var current: UnsafeMutablePointer<ThreadMark> {
        guard let known = pthread_getspecific(key) else { return makeCurrent() }
        return known.assumingMemoryBound(to: ThreadMark.self)
    }

    /// The current thread's mark, after the check that no model's code is on the stack.
    static var outsideModels: UnsafeMutablePointer<ThreadMark> {
        let mark = current
        if mark.pointee.isInModel { trapInModel() }
        return mark
    }

    @inline(never)
    private static func makeCurrent() -> UnsafeMutablePointer<ThreadMark> {
        let mark = UnsafeMutablePointer<ThreadMark>.allocate(capacity: 1)
        mark.initialize(to: ThreadMark())
        pthread_setspecific(key, mark)
        return mark
    }

    /// Ends the program: a model's code touched a store.
    @usableFromInline
    @inline(never)
    static func trapInModel() -> Never {
        fatalError(
            """
            A store was touched inside a model's check, apply or computed property. These run \
            under their store's lock and must use only the model, the action and the context. \
            Dispatch from an observer instead.
            """)
    }
}

extension UnsafeMutablePointer<ThreadMark> {
    /// Runs a function on this thread, for which dispatches of others wait.
    ///
    /// - Parameters:
    ///   - isLettingGo: Whether the function is one of these dispatches.
    ///   - body: Runs once.
    func neededByOthers(isLettingGo: Bool = false, _ body: () -> Void) {
        let former = pointee
        pointee.isNeeded = true
        pointee.isLettingGo = isLettingGo
        body()
        pointee.isNeeded = former.isNeeded
        pointee.isLettingGo = former.isLettingGo
    }
}
