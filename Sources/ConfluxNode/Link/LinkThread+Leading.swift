import ConfluxZeroMQ

/// Who drives the link: its own thread, or another thread that holds the `lead`. The link's thread
/// lets go of the lead in two places:
///
/// - *While the link sleeps.* A thread that dispatches while nothing else is under way then sends
///   by itself (``sendAtOnce()``), so that its action need not wait until the link is awake.
/// - *While the link's thread applies* (``applyAside()``). User code may keep it for long.
///   Meanwhile, the thread that usually applies drives the link (``relieve()``), so that no beat is
///   late.
extension LinkThread {
    /// The most bytes of commits that the link's thread applies itself. With more bytes, it is
    /// faster if the two threads work beside each other.
    private static let asideBytesMax = 16 << 10
    /// How many jobs may wait before the thread that applies is told.
    private static let quietJobsMax = 64

    /// Lets other threads drive the link while its thread sleeps.
    func letLead(during wait: () -> Void) {
        isAsleep = true
        lead.letGo()
        wait()
        lead.take()
        isAsleep = false
    }

    /// After each turn of the link's own thread: has the turn's jobs applied, by this thread or by
    /// the other.
    func applyAside() {
        guard hasNews || jobs.count > Self.quietJobsMax else { return }
        guard newsBytes <= Self.asideBytesMax, end == nil, apply.beginAside() else {
            return announceJobs()
        }
        (hasNews, newsBytes) = (false, 0)
        lead.aside(
            { apply.applyAside() }, wakingBy: { port.waker.wake() },
            wakingReliefBy: { jobs.wake() })
        // Another thread that drove the link meanwhile may have posted jobs.
        if hasNews { announceJobs() }
    }

    private func announceJobs() {
        (hasNews, newsBytes) = (false, 0)
        jobs.announce()
    }

    /// Drives the link while the link's thread is held up. Called by the thread that applies.
    ///
    /// - Returns: When to call this again at the latest; nil if there is no such time.
    func relieve() -> Duration? {
        lead.relieve(isOver: { end != nil }, turn: { turn() })
        return lead.watchInterval
    }

    /// Sends what was dispatched, on the thread that dispatched it, if the link sleeps and nothing
    /// is under way. While something is, the link gathers what follows. The caller must wake the
    /// link afterwards in any case: the link has a new deadline, and may have to wait for room to
    /// send the rest.
    func sendAtOnce() {
        guard lead.takeIfFree() else { return }
        defer { lead.letGo() }
        guard isAsleep, end == nil, machine.isSettled, port.mailbox.count == 0 else { return }
        takeDispatches()
    }
}
