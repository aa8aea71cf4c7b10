import ConfluxVocabulary
import Dispatch
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

extension Moment {
    /// The present readings of the system's clocks.
    static var present: Moment {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Moment(
            monotonic: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec), wall: WallClock.now)
    }
}

extension Duration {
    /// The duration as an interval of Dispatch: at most 292 years. A longer one becomes never.
    package var dispatchInterval: DispatchTimeInterval {
        let (seconds, attoseconds) = components
        let (whole, isTooLong) = Int(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (all, isStillTooLong) = whole.addingReportingOverflow(
            Int(attoseconds / 1_000_000_000))
        return isTooLong || isStillTooLong ? .never : .nanoseconds(all)
    }
}
