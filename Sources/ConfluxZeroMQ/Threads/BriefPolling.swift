import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Decides whether a thread polls before it sleeps, and polls. A thread that sleeps is woken late: its processor has to
/// wake, too, and its caches are cold. So if its last wait was short, it first looks again and again, and yields its
/// processor after each look.
package struct BriefPolling {
    /// Whether a thread can poll without keeping all others from running.
    private static let hasProcessorToSpare = sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1

    /// Whether the last wait that might have polled was short enough for that.
    private var wasShort = false
    private var contention = Contention()

    package init() {}

    /// Looks again and again, if that is worthwhile. Ends early if a yield took too long.
    ///
    /// - Parameters:
    ///   - busyMax: For how long; zero for not at all.
    ///   - begun: When the wait began.
    ///   - look: Looks for what is awaited. Anything but 0 is a finding.
    /// - Returns: The finding; 0 if there is none. Then the thread should sleep.
    package mutating func poll(
        for busyMax: Duration, since begun: Duration, _ look: () -> Int32
    ) -> Int32 {
        guard Self.hasProcessorToSpare, busyMax > .zero, wasShort, !contention.isBusy(at: begun)
        else { return 0 }
        var now = Moment.now.monotonic
        while true {
            let found = look()
            guard found == 0 else { return found }
            sched_yield()
            let back = Moment.now.monotonic
            guard !contention.noteYield(from: now, to: back), back < begun + busyMax else {
                return 0
            }
            now = back
        }
    }

    /// A wait is over.
    ///
    /// - Parameters:
    ///   - begun: When it began.
    ///   - busyMax: How long it might have polled.
    package mutating func end(_ begun: Duration, busyMax: Duration) {
        if busyMax > .zero { wasShort = Moment.now.monotonic - begun <= busyMax }
    }
}
