import ConfluxVocabulary
import Foundation

/// The system's wall clock, read where no sequencer gives the time.
enum WallClock {
    /// The present time.
    static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
