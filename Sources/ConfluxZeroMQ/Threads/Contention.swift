/// Notices that another thread keeps the processor busy. A thread that has to share its processor must not poll.
///
/// A thread that polls yields again and again. It then gets the processor back only once the other thread has used up its
/// time slice, which takes milliseconds. A thread that sleeps gets it as soon as it wakes.
package struct Contention {
    /// A longer yield costs more than polling saves.
    package static let yieldMax = Duration.milliseconds(1)
    /// Two such yields that are no further apart show that the processor is busy. A single one may have other causes,
    /// such as a host that stops a virtual machine for a moment.
    package static let interval = Duration.milliseconds(20)
    /// How long the processor counts as busy.
    package static let pause = Duration.milliseconds(100)

    /// When the last yield ended that took too long.
    private var last: Duration?
    private var busyUntil = Duration.zero

    package init() {}

    /// Notes a yield. The times are those of one monotonic clock.
    ///
    /// - Parameters:
    ///   - begun: When the thread yielded its processor.
    ///   - ended: When it had it back.
    /// - Returns: Whether that took too long.
    package mutating func noteYield(from begun: Duration, to ended: Duration) -> Bool {
        guard ended - begun > Self.yieldMax else { return false }
        if let last, ended - last <= Self.interval { busyUntil = ended + Self.pause }
        last = ended
        return true
    }

    /// Looks whether the processor counts as busy.
    ///
    /// - Parameter now: The time of the same clock.
    /// - Returns: Whether it does.
    package func isBusy(at now: Duration) -> Bool { now < busyUntil }
}
