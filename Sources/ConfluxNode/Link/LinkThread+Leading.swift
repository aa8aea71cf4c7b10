import ConfluxZeroMQ

/// Lets other threads drive the link. The thread that has the `lead` drives it. The link's own thread gives up the lead
/// in two places:
///
/// - *While the link sleeps.* A thread that dispatches while nothing else is in flight then sends the action itself
///   (``sendAtOnce()``), so that the action does not wait until the link is awake.
/// - *While the link's thread applies* (``applyAside()``). User code may keep it for long. Then the thread that
///   usually applies drives the link (``relieve()``), so that no beat is late.
extension LinkThread {
    /// The most bytes of commits that the link's thread applies itself. With more, two threads in parallel are
    /// faster.
    private static let asideBytesMax = 16 << 10
    /// How many jobs may wait before the thread that applies is notified.
    private static let quietJobsMax = 64

    /// Lets other threads drive the link while its thread sleeps.
    func letLead(during wait: () -> Void) {
        isAsleep = true
        lead.letGo()
        wait()
        lead.take()
        isAsleep = false
    }

    /// Applies what a turn of the link's own thread has brought. Called after each turn.
    func applyAside() {
        guard hasNews || jobs.count > Self.quietJobsMax else { return }
        guard newsBytes <= Self.asideBytesMax, end == nil, apply.beginAside() else {
            return announceJobs()
        }
        (hasNews, newsBytes) = (false, 0)
        lead.aside(
            { apply.applyAside() }, wakingBy: { port.waker.wake() },
            wakingReliefBy: { jobs.wake() })
        // The thread that relieved this one may have left jobs.
        if hasNews { announceJobs() }
    }

    private func announceJobs() {
        (hasNews, newsBytes) = (false, 0)
        jobs.announce()
    }

    /// Drives the link if its thread is held up. Called by the thread that applies.
    ///
    /// - Returns: The latest time of the next call; nil if none is due.
    func relieve() -> Duration? {
        lead.relieve(isOver: { end != nil }, turn: { turn() })
        return lead.watchInterval
    }

    /// Sends the dispatched actions on the dispatching thread, if the link sleeps and nothing is in flight. While something
    /// is in flight, the link gathers actions. The link must be woken afterwards in any case: it has a new deadline, and
    /// may have to wait for room to send the rest.
    func sendAtOnce() {
        guard lead.takeIfFree() else { return }
        defer { lead.letGo() }
        guard isAsleep, end == nil, machine.isSettled, port.mailbox.count == 0 else { return }
        takeDispatches()
    }
}
