import CSockets

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif
import Synchronization

/// A thread of the system, with a name that debuggers show and a stack of a given size.
///
/// It runs one function and ends. You need not join it: an unjoined thread just runs to its end.
public final class NamedThread: Sendable {
    private struct Handle: @unchecked Sendable {  // `Mutex` below guards it; the system owns it
        let thread: pthread_t
    }

    /// Which threads go first when processors are busy.
    public enum Priority: Sendable {
        /// The priority of the process.
        case normal
        /// Below normal: about a tenth of the normal share of a busy processor, and all of an idle one.
        case low
    }

    private final class Start {
        let name: String
        let priority: Priority
        let body: () -> Void

        init(name: String, priority: Priority, body: sending @escaping () -> Void) {
            self.name = name
            self.priority = priority
            self.body = body
        }
    }

    /// The thread's name; Linux shows the first 15 bytes.
    public let name: String
    /// nil once joined.
    private let handle: Mutex<Handle?>

    /// Starts a thread.
    ///
    /// - Parameters:
    ///   - name: The thread's name.
    ///   - stackBytes: The size of its stack, 64 KiB to 1 GiB, rounded up to pages. The default, 8
    ///     MiB, is what main threads have, and suits code of any user.
    ///   - priority: Whether other threads go first. If the system does not allow a lower priority,
    ///     the thread keeps its own.
    ///   - body: What the thread runs. It may own what it captures, such as sockets.
    /// - Throws: `invalidSetting`; `threadNotStarted` if the system has no room for another thread.
    public init(
        _ name: String, stackBytes: Int = 8 << 20, priority: Priority = .normal,
        body: sending @escaping () -> Void
    ) throws(ZeroMQError) {
        guard (64 << 10...1 << 30).contains(stackBytes) else {
            throw ZeroMQError(
                .invalidSetting,
                "The stack of thread \(name) is to have \(stackBytes) bytes; it has 64 KiB to 1 GiB."
            )
        }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        let page = Int(getpagesize())
        pthread_attr_setstacksize(&attributes, (stackBytes + page - 1) / page * page)

        let start = Unmanaged.passRetained(Start(name: name, priority: priority, body: body))
        #if canImport(Darwin)
            var thread: pthread_t?
            let number = pthread_create(&thread, &attributes, Self.run, start.toOpaque())
        #else
            var created = pthread_t()
            let number = pthread_create(&created, &attributes, Self.run, start.toOpaque())
            let thread: pthread_t? = created
        #endif
        guard number == 0, let thread else {
            start.release()
            throw ZeroMQError(
                .threadNotStarted,
                "Thread \(name) could not be started (error \(number)). Raise the limit of "
                    + "processes (ulimit -u), or free memory.", systemNumber: number)
        }
        self.name = name
        handle = Mutex(Handle(thread: thread))
    }

    #if canImport(Darwin)
        private static let run:
            @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? =
                { argument in
                    begin(argument)
                    return nil
                }
    #else
        private static let run:
            @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? =
                { argument in
                    if let argument { begin(argument) }
                    return nil
                }
    #endif

    private static func begin(_ argument: UnsafeMutableRawPointer) {
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        conflux_name_thread(start.name)
        if start.priority == .low { conflux_lower_priority() }
        start.body()
    }

    /// Lets the threads that wait for this processor run first.
    ///
    /// Call it between the pieces of long work. The kernel takes a processor from a computing thread only at the next
    /// clock tick. Ticks are 4 ms apart on many machines, and threads that wait lose that time. Any thread may call
    /// it.
    public static func yield() {
        sched_yield()
    }

    /// Waits until the thread has ended. Several threads may wait; once it has ended, this returns
    /// at once. A thread must not join itself: that traps.
    public func join() {
        // Only threads that join contend for this lock.
        handle.withLock { handle in
            guard let running = handle else { return }
            precondition(
                pthread_equal(running.thread, pthread_self()) == 0, "thread \(name) joins itself")
            pthread_join(running.thread, nil)
            handle = nil
        }
    }

    deinit {
        handle.withLock { handle in
            if let running = handle { pthread_detach(running.thread) }
        }
    }
}
