import ConfluxZeroMQ

/// Who drives the link, besides its own thread: whoever has the `lead`. That is let go in two places:
///
/// - *While the link sleeps.* A thread that dispatches when nothing else is under way then sends by itself
///   (``sendAtOnce()``), so that what it sends does not wait until the link is awake.
/// - *While the link's thread applies* (``applyAside()``). User code may keep it for long. Then the thread that
///   would apply otherwise drives the link meanwhile (``relieve()``), so that no beat is late.
extension LinkThread {
    /// The most bytes of commits that the link's thread applies by itself: with more the two threads get on
    /// better beside each other.
    private static let asideBytesMax = 16 << 10
    /// How many jobs may wait for the thread that applies without its knowing.
    private static let quietJobsMax = 64

    /// Has others drive the link while its thread sleeps.
    func letLead(during wait: () -> Void) {
        isAsleep = true
        lead.letGo()
        wait()
        lead.take()
        isAsleep = false
    }

    /// Behind each turn of the link's own thread: has applied what the turn has brought.
    func applyAside() {
        guard hasNews || jobs.count > Self.quietJobsMax else { return }
        guard newsBytes <= Self.asideBytesMax, end == nil, apply.beginAside() else {
            return announceJobs()
        }
        (hasNews, newsBytes) = (false, 0)
        lead.aside(
            { apply.applyAside() }, wakingBy: { port.waker.wake() },
            wakingReliefBy: { jobs.wake() })
        // Of whoever relieved this thread.
        if hasNews { announceJobs() }
    }

    private func announceJobs() {
        (hasNews, newsBytes) = (false, 0)
        jobs.announce()
    }

    /// Drives the link while its thread is held up, if it is. Called by the thread that applies.
    ///
    /// - Returns: When it is to be called again at the latest; nil for whenever.
    func relieve() -> Duration? {
        lead.relieve(isOver: { end != nil }, turn: { turn() })
        return lead.watchInterval
    }

    /// Sends what was dispatched, on the thread that dispatched it, if the link sleeps and nothing is under
    /// way. While something is, the link gathers what follows. The link is to be woken behind it in any case: it has
    /// a new deadline, and may have to wait for room to send the rest.
    func sendAtOnce() {
        guard lead.takeIfFree() else { return }
        defer { lead.letGo() }
        guard isAsleep, end == nil, machine.isSettled, port.mailbox.count == 0 else { return }
        takeDispatches()
    }
}
