import ConfluxThreads
import Synchronization

/// A thread's turn in the line of a store on `.immediate`: the thread waits for it, and then commits
/// its action itself.
///
/// **Problem.** Another thread serves the lane. If it committed this thread's action, too, it would
/// run this thread's observers, might serve others for ever, and the dispatch would return before its commit.
///
/// **Design.** The turn stands in the line just before the action. The thread that comes to it
/// leaves the lane to the waiting thread, which continues behind the turn: with its own action first.
///
/// A thread that dispatches to one store first tries for a short while to enter the lane, which
/// costs least if commits are short. And it polls for its turn for a while before it sleeps.
///
/// **No deadlock.** A thread that is inside a commit or an observer never waits for a turn, so a
/// chain of waiting threads ends at one that runs user code. That code may wait for the first
/// thread by other means. So a thread gives up its turn when the lane has committed nothing for
/// ``Room/stillnessMax``; then the lane commits the action without it.
final class DispatchTurn: LaneHold {
    private enum Phase: UInt8, AtomicRepresentable {
        /// The thread polls for its turn.
        case awake
        case asleep
        /// The lane waits for the thread.
        case reached
        /// The thread doesn't wait any more, or the store was released.
        case over
    }

    private let phase = Atomic(Phase.awake)
    private let turn = Latch()
    var isTurn: Bool { true }

    func arrive(_ lane: Lane) -> Bool {
        let isAwake = change(.awake, to: .reached)
        let isWoken = !isAwake && change(.asleep, to: .reached)
        if isWoken { turn.open() }
        return !isAwake && !isWoken
    }

    func abandon(_ lane: Lane) {
        let former = phase.exchange(.over, ordering: .acquiringAndReleasing)
        if former == .asleep { turn.open() }
    }

    /// Waits for the turn, and serves the lane from there. Called once, by the thread whose turn it is.
    func take(in lane: Lane) {
        var looks = 0
        while looks < LaneLimits.looksMax, phase.load(ordering: .acquiring) == .awake {
            ThreadMark.pause()
            looks += 1
        }
        if change(.awake, to: .asleep), isInVain(in: lane) { return }
        lane.resume(self)
    }

    /// Sleeps until the turn has come.
    ///
    /// - Returns: Whether the turn was given up.
    private func isInVain(in lane: Lane) -> Bool {
        var seen = lane.count.load(ordering: .relaxed)
        while !turn.wait(for: Room.stillnessMax) {
            let moved = lane.count.load(ordering: .relaxed)
            if moved == seen, change(.asleep, to: .over) { return true }
            seen = moved
        }
        return false
    }

    private func change(_ former: Phase, to new: Phase) -> Bool {
        phase.compareExchange(
            expected: former, desired: new, ordering: .acquiringAndReleasing
        ).exchanged
    }
}
