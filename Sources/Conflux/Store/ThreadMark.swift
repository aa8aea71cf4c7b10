import Foundation
import Synchronization

/// What the current thread is in the middle of.
///
/// Two rules need it. A thread that works for a lane never waits for another lane: otherwise two
/// threads could wait for each other. And a thread inside a model's code holds that store's lock,
/// so touching the store from there would deadlock; it traps instead.
///
/// The code that sets a mark never suspends before it resets it, so a mark stays with its thread.
@usableFromInline
struct ThreadMark {
    /// How many lanes' user code the thread is in; a signal's delivery to its observers counts as
    /// one.
    @usableFromInline var lanes = 0
    /// Whether the thread is in a model's `check`, `apply` or key-path read.
    @usableFromInline var isInModel = false
    /// Whether the thread puts a snapshot into a state.
    @usableFromInline var isRestoring = false
    /// Whether the thread was found to track what it reads of a value store.
    @usableFromInline var isTracking = false
    /// What keeps what signals are sent, and in how many lanes the thread is then.
    var withholding: Withholding?
    @usableFromInline var withholdingDepth = 0
    /// Whether what signals are sent is kept. If the thread is in a further lane, that one's signals deliver.
    @usableFromInline var isWithholding: Bool {
        withholdingDepth > 0 && withholdingDepth == lanes
    }
    /// Whether others' dispatches depend on this thread, so that it must not wait for room.
    var isNeeded = false
    /// Whether it is the main thread. *Use*: asking the system each time costs more than a dispatch.
    let isMain = Thread.isMainThread

    /// Whether the thread may wait: for room, or for its turn in a line.
    var mayWait: Bool { lanes == 0 && !isNeeded }
    /// Whether the thread may wait inside of the one delivery that it is in.
    var mayWaitInDelivery: Bool { lanes == 1 && !isNeeded }

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

    /// One more than ``key``, or 0 until a mark was made. *Use*: each access to ``key`` asks whether it is
    /// initialised, which takes as long as the access. This variable is initialised by the compiler.
    private static let knownKey = Atomic<UInt>(0)

    /// The current thread's mark; valid on this thread alone, as long as it lives.
    @usableFromInline
    static var current: UnsafeMutablePointer<ThreadMark> {
        let known = knownKey.load(ordering: .relaxed)
        guard known != 0,
            let mark = pthread_getspecific(pthread_key_t(truncatingIfNeeded: known &- 1))
        else { return makeCurrent() }
        return mark.assumingMemoryBound(to: ThreadMark.self)
    }

    /// Lets some ten nanoseconds pass, for a thread that polls for something that comes soon.
    @inline(never)
    static func pause() {
        _ = pthread_getspecific(key)
        _ = pthread_getspecific(key)
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
        knownKey.store(UInt(key) + 1, ordering: .relaxed)
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
    /// Identifies the thread, for comparisons.
    @inlinable
    var thread: UInt { UInt(bitPattern: self) }

    /// Runs a function on this thread, while others' dispatches depend on the thread.
    func neededByOthers(_ body: () -> Void) {
        let former = pointee.isNeeded
        pointee.isNeeded = true
        body()
        pointee.isNeeded = former
    }
}
