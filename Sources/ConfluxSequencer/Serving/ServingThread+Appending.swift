import ConfluxProtocol
import ConfluxZeroMQ

/// The appends that the thread which serves does by itself, since that is sooner done than waking the log's.
/// While one takes long, the log's thread serves, so that a slow disk delays nobody's beat.
extension ServingThread {
    /// The most bytes that this thread appends by itself to a log on a disk.
    private static let ownBytesMax = 64 << 10

    /// Whether this thread appends by itself: where nothing is to be gathered meanwhile.
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
            // Another thread may have ended the tenure meanwhile: then the append is given up with it.
            if end == nil { jobs.post(.append(append)) }
            return
        }
        takeAnswers()
        if end == nil { perform(.drained) }
    }

    /// What the log's thread calls behind each sleep. It says how long that may sleep.
    var relief: () -> Duration? {
        { [weak self] in
            guard let self else { return nil }
            // Where another one may serve, nodes are told that the tenure is over until the append has ended.
            lead.relieve(
                isOver: { self.end != nil && self.standby == nil }, turn: { self.turn() })
            return lead.watchInterval
        }
    }
}
