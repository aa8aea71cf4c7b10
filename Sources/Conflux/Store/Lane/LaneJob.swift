/// A job of a lane. The lane does its jobs one after the other.
@usableFromInline
enum LaneJob: Sendable {
    /// Something to do. With false it reports that the store was released before its turn.
    case work(@Sendable (_ isOpen: Bool) -> Void)
    /// Later jobs wait for this one.
    case hold(any LaneHold)
}

/// Something in a lane's line that the lane waits for. What stands behind it comes after it.
///
/// For each lane that it was put into, a hold gets exactly one of ``arrive(_:)`` and
/// ``abandon(_:)``, or both, if the store is released while the lane waits. In that case, `abandon`
/// may come before `arrive`.
@usableFromInline
protocol LaneHold: AnyObject, Sendable {
    /// Whether it waits for the thread whose action comes next, and for nothing else.
    var isTurn: Bool { get }

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

extension LaneHold {
    @usableFromInline var isTurn: Bool { false }
}
