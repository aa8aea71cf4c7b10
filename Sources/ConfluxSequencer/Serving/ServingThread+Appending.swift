import ConfluxProtocol
import ConfluxZeroMQ

/// Appends that the serving thread does itself, since that is faster than waking the log's thread. If an
/// append takes long, the log's thread serves meanwhile, so that a slow disk delays no beat.
extension ServingThread {
    /// The most bytes that this thread appends itself to a log on disk.
    private static let ownBytesMax = 64 << 10

    /// Whether this thread appends itself: only if waiting would not gather more actions.
    func mayAppend(_ append: Append) -> Bool {
        isMemory
            || takenCount <= 1
                && append.commits.reduce(0) { $0 + $1.frame.count } <= Self.ownBytesMax
    }

    func appendAside(_ append: Append) {
        ownAppend = nil
        var isDone = false
        if isMemory {
            isDone = appender.append(append)
        } else {
            lead.aside(
                { isDone = appender.append(append) }, wakingBy: { waker.wake() },
                wakingReliefBy: { jobs.wake() })
        }
        guard isDone else {
            // If another thread has ended the term meanwhile, the append is dropped with it.
            if end == nil { jobs.post(.append(append)) }
            return
        }
        takeAnswers()
        if end == nil { perform(.drained) }
    }

    /// The function that the log's thread calls after each sleep. It returns how long that thread may sleep next.
    var relief: () -> Duration? {
        { [weak self] in
            guard let self else { return nil }
            // If other sequencers may serve, this continues after the term's end until the append has ended, so
            // that nodes are told.
            lead.relieve(
                isOver: { self.end != nil && self.standby == nil }, turn: { self.turn() })
            return lead.watchInterval
        }
    }
}
