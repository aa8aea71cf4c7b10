import ConfluxVocabulary
import Dispatch
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Who drives something that must never stand still, such as a thread's sockets: whoever has the lead.
///
/// Its own thread has it, except while it sleeps, and while it does by itself what another thread would have to
/// be woken for (``aside(_:wakingBy:wakingReliefBy:)``). That mostly takes less time than to wake the other
/// thread. Where it takes long nevertheless, the other thread, which has nothing to do meanwhile, drives in its
/// stead (``relieve(isOver:turn:)``):
///
///     owner         turn ── turn ── aside ············ long ·········· back ── turn
///     other thread                          ╰─ after `asideMax`: turn ── turn ─╯
///
/// *Invariant*: at most one thread makes turns. The owner comes back when it is told that the other one has
/// left.
public final class Lead: @unchecked Sendable {  // What is not atomic is guarded by the lock.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    /// Since when the owner is aside; nil while it is not.
    private var asideSince: Duration?
    private var isRelieved = false
    /// Whether the owner is done aside, and wants the lead back.
    private let isBack = Atomic(false)
    private let hasLeft = DispatchSemaphore(value: 0)
    /// How often the owner went aside. *Use*: the other one watches while it does.
    private let asides = Atomic<UInt64>(0)
    private let isWatched = Atomic(false)
    /// What the other thread has seen of `asides`, and how often in a row.
    private var seen: UInt64 = 0
    private var quietWatches = 0

    /// For how long the owner may be aside before it is relieved, and how often the other one looks.
    private static let asideMax = Duration.milliseconds(5)
    /// How often it looks in vain before it looks no more.
    private static let quietWatchesMax = 20

    /// Makes one that nobody has.
    public init() {
        mutex = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Takes the lead, when whoever has it lets it go.
    public func take() { pthread_mutex_lock(mutex) }

    /// Takes the lead if nobody has it.
    ///
    /// - Returns: Whether it was taken.
    public func takeIfFree() -> Bool { pthread_mutex_trylock(mutex) == 0 }

    /// Lets the lead go.
    public func letGo() { pthread_mutex_unlock(mutex) }

    // MARK: The owner

    /// Does something without the lead, which the calling thread has before and behind it.
    ///
    /// - Parameters:
    ///   - body: What may take long.
    ///   - wake: Ends a sleep of the one that relieves.
    ///   - wakeRelief: Ends a sleep of the thread that is to relieve.
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

    /// How long the other thread may sleep at most; nil for as long as it likes.
    public var watchInterval: Duration? {
        isWatched.load(ordering: .acquiring) ? Self.asideMax : nil
    }

    /// Drives while the owner is held up, if it is. To be called after each sleep. It waits for nobody: as
    /// long as somebody has the lead, there is nothing to relieve.
    ///
    /// - Parameters:
    ///   - isOver: Whether nothing is to be driven any more.
    ///   - turn: Waits for what is next, and does it. It is called with the lead, and may let it go meanwhile.
    public func relieve(isOver: () -> Bool, turn: () -> Void) {
        watch()
        guard takeIfFree() else { return }
        defer { letGo() }
        guard let since = asideSince, Moment.now.monotonic - since >= Self.asideMax,
            !isBack.load(ordering: .acquiring)
        else { return }
        isRelieved = true
        // A turn need not let the lead go: so it ends where the owner waits for that.
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
        // One that went aside just now has seen that it is watched.
        if asides.load(ordering: .sequentiallyConsistent) != seen {
            isWatched.store(true, ordering: .sequentiallyConsistent)
        }
    }
}
