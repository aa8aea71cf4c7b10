import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension Moment {
    /// Reads the clocks of this machine. The shells pass the result to the pure layers as an input.
    package static var now: Moment {
        var wall = timespec()
        clock_gettime(CLOCK_REALTIME, &wall)
        var monotonic = timespec()
        clock_gettime(CLOCK_MONOTONIC, &monotonic)
        return Moment(
            monotonic: .seconds(monotonic.tv_sec) + .nanoseconds(monotonic.tv_nsec),
            wall: Timestamp(Int64(wall.tv_sec) * 1_000_000_000 + Int64(wall.tv_nsec)))
    }
}
