import ConfluxVocabulary
import Dispatch

/// Something in a lane's line that the lane waits for. What stands behind it comes after it.
///
/// For each lane that it was put into, a hold gets exactly one of ``arrive(_:)`` and
/// ``abandon(_:)``, or both, if the store is released while the lane waits. In that case, `abandon`
/// may come before `arrive`.
protocol LaneHold: AnyObject, Sendable {
    /// The lane has done all that stands before the hold. Called by the thread that serves it,
    /// holding no lock.
    ///
    /// - Returns: Whether the lane continues at once. If not, it waits until ``Lane/resume(_:)``,
    ///   which may be called before this returns.
    func arrive(_ lane: Lane) -> Bool

    /// The lane's store was released: the lane will not arrive, or no longer waits. Called on any
    /// thread, holding no lock.
    func abandon(_ lane: Lane)
}

extension Lane {
    /// How many lanes a thread serves inside of each other before another thread takes over.
    private static let nestingMax = 16

    /// Lets the lane continue behind a hold, if it waits for that.
    ///
    /// Call it holding no lock. If the executor is immediate, this thread serves the line.
    final func resume(_ hold: any LaneHold) {
        if takeUp(after: hold) { leave() }
    }

    /// Makes the calling thread serve the lane behind a hold, until it calls ``leave()``.
    ///
    /// - Returns: Whether it serves the lane; false if the store was released meanwhile.
    final func takeUp(after hold: any LaneHold) -> Bool {
        control.withLock { $0.machine.takeUp(after: hold) }
    }

    /// Ends the calling thread's service of the lane. If the executor is immediate, the thread
    /// still serves what is in the line.
    final func leave() {
        let mark = ThreadMark.current
        let duty = control.withLock { $0.machine.leave() }
        if duty == .serve, mark.pointee.lanes >= Self.nestingMax {
            // Each lane that continues may let others continue, which would nest ever deeper.
            DispatchQueue.global().async { [self] in serve(duty, ThreadMark.current) }
        } else {
            serve(duty, mark)
        }
        if isReleased.load(ordering: .relaxed) { endIfClosed() }
    }
}
