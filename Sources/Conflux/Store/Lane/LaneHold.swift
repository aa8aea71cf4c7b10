import ConfluxVocabulary
import Dispatch

/// Something that stands in a lane's line and is waited for: what stands behind it comes after.
///
/// Each hold is told of each lane that it was put into exactly one of ``arrive(_:)`` and
/// ``abandon(_:)``, or first the one and then the other: of a store that is released while it waits.
/// It may be told of the end of a store before it is told that the lane came.
protocol LaneHold: AnyObject, Sendable {
    /// The lane has done all that stands before. Called by the thread that serves it, holding no lock.
    ///
    /// - Returns: Whether the lane goes on at once. If not, it waits until ``Lane/resume(_:)``, which
    ///   may be called before this returns.
    func arrive(_ lane: Lane) -> Bool

    /// The lane's store was released: it will not come, or waits no more. Called on any thread, holding
    /// no lock.
    func abandon(_ lane: Lane)
}

extension Lane {
    /// How deeply threads serve lanes inside of each other before another thread does.
    private static let nestingMax = 16

    /// Lets the lane go on behind a hold that it waits for; does nothing if it does not.
    ///
    /// Holding no lock. It serves the line on this thread if the executor is immediate.
    final func resume(_ hold: any LaneHold) {
        let mark = ThreadMark.current
        guard isImmediate, mark.pointee.lanes >= Self.nestingMax else {
            return serve(goOn(behind: hold), mark)
        }
        // Each lane that goes on may let others go on.
        DispatchQueue.global().async { [self] in serve(goOn(behind: hold), ThreadMark.current) }
    }

    private func goOn(behind hold: any LaneHold) -> Duty {
        control.withLock { control in
            guard control.hold === hold else { return .none }
            control.hold = nil
            control.isBusy = false
            return control.claim(isImmediate: isImmediate)
        }
    }

    /// The thread that came to a hold goes on serving.
    ///
    /// - Returns: Whether it does; false if the store was released meanwhile.
    final func takeUp(after hold: any LaneHold) -> Bool {
        control.withLock { control in
            guard control.hold === hold else { return false }
            control.hold = nil
            return true
        }
    }
}
