import ConfluxVocabulary
import Dispatch
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The right to drive something that must never stand still, such as a thread's sockets.
///
/// The owner is the thread of these sockets. It has the lead, except while it sleeps or does the work of another
/// thread (``aside(_:wakingBy:wakingReliefBy:)``). Doing the work itself mostly takes less time than waking the other
/// thread. If it takes long nevertheless, the other thread, which has nothing to do meanwhile, drives instead
/// (``relieve(isOver:turn:)``):
///
///     owner         turn ── turn ── aside ············ long ·········· back ── turn
///     other thread                          ╰─ after `asideMax`: turn ── turn ─╯
///
/// *Invariant*: at most one thread makes turns. The owner continues only after the other thread has left.
public final class Lead: @unchecked Sendable {  // What is not atomic is guarded by the lock.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    /// When the owner went aside; nil if it is not aside.
    private var asideSince: Duration?
    private var isRelieved = false
    /// Whether the owner's work aside is done, and it wants the lead back.
    private let isBack = Atomic(false)
    private let hasLeft = DispatchSemaphore(value: 0)
    /// How often the owner went aside. *Use*: the other thread watches only while this number
    /// rises.
    private let asides = Atomic<UInt64>(0)
    private let isWatched = Atomic(false)
    /// The value of `asides` that the other thread saw last, and how often in a row it saw no
    /// change.
    private var seen: UInt64 = 0
    private var quietWatches = 0

    /// How long the owner may be aside before it is relieved. Also the other thread's interval between two looks.
    private static let asideMax = Duration.milliseconds(5)
    /// After how many looks without a change the other thread stops watching.
    private static let quietWatchesMax = 20

    /// Makes a lead that nobody has.
    public init() {
        mutex = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Takes the lead. Blocks while another thread has it.
    public func take() { pthread_mutex_lock(mutex) }

    /// Takes the lead if nobody has it.
    ///
    /// - Returns: Whether it was taken.
    public func takeIfFree() -> Bool { pthread_mutex_trylock(mutex) == 0 }

    /// Releases the lead.
    public func letGo() { pthread_mutex_unlock(mutex) }

    // MARK: The owner

    /// Does something without the lead. The calling thread has the lead before and afterwards.
    ///
    /// - Parameters:
    ///   - body: The work, which may take long.
    ///   - wake: Ends a sleep in a turn of the thread that relieves the owner, so that it leaves.
    ///   - wakeRelief: Ends the sleep of the other thread, so that it begins to watch.
    public func aside(
        _ body: () -> Void, wakingBy wake: () -> Void, wakingReliefBy wakeRelief: () -> Void
    ) {
        asides.add(1, ordering: .sequentiallyConsistent)
        if !isWatched.exchange(true, ordering: .sequentiallyConsistent) { wakeRelief() }
        asideSince = Moment.now.monotonic
        letGo()
        body()
        isBack.store(true, ordering: .releasing)
        take()
        isBack.store(false, ordering: .relaxed)
        asideSince = nil
        guard isRelieved else { return }
        wake()
        letGo()
        hasLeft.wait()
        take()
    }

    // MARK: The other thread

    /// How long the other thread may sleep at most; nil for any time.
    public var watchInterval: Duration? {
        isWatched.load(ordering: .acquiring) ? Self.asideMax : nil
    }

    /// Drives in place of the owner, for as long as the owner is held up. Call it after each sleep. It does not
    /// block: if another thread has the lead, there is nothing to do.
    ///
    /// - Parameters:
    ///   - isOver: Whether there is nothing left to drive.
    ///   - turn: Waits for the next thing to do, and does it. It is called with the lead, and may release it
    ///     meanwhile.
    public func relieve(isOver: () -> Bool, turn: () -> Void) {
        watch()
        guard takeIfFree() else { return }
        defer { letGo() }
        guard let since = asideSince, Moment.now.monotonic - since >= Self.asideMax,
            !isBack.load(ordering: .acquiring)
        else { return }
        isRelieved = true
        // A turn may keep the lead throughout, so the loop also ends when the owner waits for the
        // lead.
        while asideSince != nil, !isBack.load(ordering: .acquiring), !isOver() { turn() }
        isRelieved = false
        if asideSince == nil { hasLeft.signal() }
    }

    private func watch() {
        guard isWatched.load(ordering: .acquiring) else { return }
        let present = asides.load(ordering: .acquiring)
        quietWatches = present == seen ? quietWatches + 1 : 0
        seen = present
        guard quietWatches >= Self.quietWatchesMax else { return }
        quietWatches = 0
        isWatched.store(false, ordering: .sequentiallyConsistent)
        // An owner that went aside just now has seen that it is watched, and has woken nobody.
        if asides.load(ordering: .sequentiallyConsistent) != seen {
            isWatched.store(true, ordering: .sequentiallyConsistent)
        }
    }
}
