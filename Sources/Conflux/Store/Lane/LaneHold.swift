import ConfluxVocabulary
import Dispatch

/// Something that stands in a lane's line and is waited for: what follows it comes after.
///
/// Each hold gets, for each lane that it was put into, exactly one of ``arrive(_:)`` and
/// ``abandon(_:)``, or first the one and then the other: of a store that is released while it waits.
/// It may hear that a store ended before it hears that the lane arrived.
protocol LaneHold: AnyObject, Sendable {
    /// The lane has done all that stands before. Called by the thread that serves it, holding no lock.
    ///
    /// - Returns: Whether the lane continues at once. If not, it waits until ``Lane/resume(_:)``,
    ///   which may be called before this returns.
    func arrive(_ lane: Lane) -> Bool

    /// The lane's store was released: it will not come, or waits no more. Called on any thread, holding
    /// no lock.
    func abandon(_ lane: Lane)
}

extension Lane {
    /// How deeply threads serve lanes inside of each other before another thread does.
    private static let nestingMax = 16

    /// Lets the lane continue behind a hold that it waits for; does nothing if it does not.
    ///
    /// Holding no lock. It serves the line on this thread if the executor is immediate.
    final func resume(_ hold: any LaneHold) {
        if takeUp(after: hold) { leave() }
    }

    /// Has the calling thread serve the lane behind a hold, until it says ``leave()``.
    ///
    /// - Returns: Whether it does; false if the store was released meanwhile.
    final func takeUp(after hold: any LaneHold) -> Bool {
        control.withLock { $0.machine.takeUp(after: hold) }
    }

    /// The calling thread serves the lane no more, but for what stands in the line if the executor is
    /// immediate.
    final func leave() {
        let mark = ThreadMark.current
        let duty = control.withLock { $0.machine.leave() }
        if duty == .serve, mark.pointee.lanes >= Self.nestingMax {
            // Each lane that continues may let others continue.
            DispatchQueue.global().async { [self] in serve(duty, ThreadMark.current) }
        } else {
            serve(duty, mark)
        }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }
}
