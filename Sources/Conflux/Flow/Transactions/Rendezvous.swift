import Synchronization

/// Where several lanes meet. None continues before all have arrived, and the last one has done the work.
///
/// Lanes wait without a thread. One reservation gives all of them their places
/// (``Scope/reserving(in:_:)``), so two meetings of the same lanes never wait for each other.
final class Rendezvous: LaneHold {
    private struct Content {
        /// How many lanes have neither arrived nor been released.
        var missing: Int
        var parked: [Lane] = []
        var gone: [ObjectIdentifier] = []
        var isOver = false
    }

    private let state: Mutex<Content>
    private let work: @Sendable (_ isWhole: Bool) -> Void

    /// Makes a meeting.
    ///
    /// - Parameters:
    ///   - count: How many lanes have a place.
    ///   - work: Called once, holding no lock: by the thread that serves the last lane to arrive,
    ///     or that finds the last missing lane released. Gets whether none of the stores was
    ///     released before.
    init(count: Int, _ work: @escaping @Sendable (_ isWhole: Bool) -> Void) {
        state = Mutex(Content(missing: count))
        self.work = work
    }

    func arrive(_ lane: Lane) -> Bool {
        let isLast = state.withLock { state -> Bool? in
            if state.isOver || state.gone.contains(ObjectIdentifier(lane)) { return nil }
            state.missing -= 1
            if state.missing > 0 { state.parked.append(lane) }
            return state.missing == 0
        }
        guard let isLast else { return true }
        if isLast { finish() }
        return isLast
    }

    func abandon(_ lane: Lane) {
        let isLast = state.withLock { state in
            state.gone.append(ObjectIdentifier(lane))
            if let place = state.parked.firstIndex(where: { $0 === lane }) {
                state.parked.remove(at: place)
                return false
            }
            if state.isOver { return false }
            state.missing -= 1
            return state.missing == 0
        }
        if isLast { finish() }
    }

    private func finish() {
        work(state.withLock { $0.gone.isEmpty })
        let parked = state.withLock { state in
            state.isOver = true
            return exchange(&state.parked, with: [])
        }
        for lane in parked { lane.resume(self) }
    }
}
