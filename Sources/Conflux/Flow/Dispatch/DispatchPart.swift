/// A part of a dispatch: what is to happen in one store, or in all stores of a state.
///
/// Whatever a scope's middleware or locks concern takes one way, as one part or as several:
///
///     dispatch ──▶ middleware ──▶ gate ──▶ places in lanes, or a route ──▶ outcome
///                      └ stopped    └ waits for a lock
///
/// An action for one store and one for all stores of a state are one part. An event has a part for each state that
/// handles it, and one for the log; a chain has one for each store. A dispatch that concerns neither middleware nor a lock, and no store that
/// waits for others, needs no parts: see ``StoreCore`` and ``GlobalChannel``.
protocol DispatchPart: AnyObject, Sendable {
    /// The channel of its state. No dispatch to all stores keeps its places meanwhile.
    var channel: any StateChannel { get }

    /// Says in which lanes to keep places. Called once, under locks.
    ///
    /// - Parameter live: The lanes of all living stores of its state.
    /// - Returns: The lanes; none if it takes a route.
    func expect(_ live: [Lane]) -> [Lane]
    /// Makes the job for one of these lanes. Called under locks.
    func job(for lane: Lane, at index: Int) -> LaneJob
    /// One of the lanes has no place for it. Called holding no lock.
    func passOver(_ lane: Lane, at index: Int, _ placement: Lane.Machine.Placement)
    /// The action, if it takes a route on which it can be sent next to others. Called once, before ``go(_:)``.
    var prepared: (any PreparedAction)? { get }
    /// All places are kept. Called once, before they are served, holding no lock.
    ///
    /// - Parameter handle: The handle of the action, if it was sent next to others.
    func go(_ handle: DispatchHandle?)
}

extension DispatchPart {
    var prepared: (any PreparedAction)? { nil }
}

extension Scope {
    /// Takes the parts of a dispatch past the gate, and to their stores.
    ///
    /// - Parameters:
    ///   - parts: The parts, as the middleware has left them.
    ///   - isMeeting: Whether all of their lanes meet, so that none may wait for what stands behind the others' places.
    ///   - whenPlaced: Called once, when all places are kept and before they are served.
    func take(
        _ parts: [any DispatchPart], isMeeting: Bool = false,
        whenPlaced: @escaping @Sendable () -> Void = {}
    ) {
        pass { [self] placed in
            let mark = ThreadMark.current
            // Used by this thread alone.
            nonisolated(unsafe) var (reservation, absent) = (Reservation(), [() -> Void]())
            reserving(in: parts.map(\.channel)) { live in
                let places = zip(parts, live).flatMap { part, live in
                    part.expect(live).enumerated().map { (part: part, index: $0, lane: $1) }
                }
                var holds = isMeeting ? places.map { order.hold(for: $0.lane) } : []
                for number in order.sorted(places.map(\.lane)) {
                    let (part, index, lane) = places[number]
                    // Behind the places that are kept already, which may be in stores that this one waits for.
                    let hold = isMeeting ? holds[number].take() : order.hold(for: lane)
                    let placement = reservation.enter(
                        lane, with: part.job(for: lane, at: index), behind: hold, mark)
                    if placement != .kept {
                        absent.append { part.passOver(lane, at: index, placement) }
                    }
                }
            }
            for passOver in absent { passOver() }
            whenPlaced()
            placed()
            if reservation.isServing {
                // Others wait for the lanes that this thread has entered, so it must not wait for room on a route.
                mark.neededByOthers { Self.go(parts) }
            } else {
                Self.go(parts)
            }
            reservation.serve(mark)
        }
    }

    /// Lets the parts go: those that one sender takes to a log stand next to each other there.
    private static func go(_ parts: [any DispatchPart]) {
        guard parts.count > 1 else { return parts.forEach { $0.go(nil) } }
        var rest = parts.map { (part: $0, prepared: $0.prepared) }
        while let (part, prepared) = rest.first {
            let joint = rest.filter { $0.prepared?.sender == prepared?.sender }
            guard let prepared, joint.count > 1 else {
                part.go(nil)
                rest.removeFirst()
                continue
            }
            rest.removeAll { $0.prepared?.sender == prepared.sender }
            let handles = prepared.send(
                joint.compactMap(\.prepared), mayWait: !ThreadMark.current.pointee.isNeeded)
            for ((part, _), handle) in zip(joint, handles) { part.go(handle) }
        }
    }

    /// Keeps places in the lanes of several states at once.
    ///
    /// - Parameters:
    ///   - channels: The states' channels.
    ///   - body: Keeps the places. Gets the live lanes for each channel. Called under locks.
    func reserving(
        in channels: [any StateChannel], _ body: (_ lanes: [[Lane]]) -> Void
    ) {
        var lanes: [ObjectIdentifier: [Lane]] = [:]
        // All threads take the locks in the same order.
        var sorted = channels.sorted { ObjectIdentifier($0) < ObjectIdentifier($1) }
        func enter() {
            guard let channel = sorted.popLast() else {
                return body(channels.map { lanes[ObjectIdentifier($0)] ?? [] })
            }
            if lanes[ObjectIdentifier(channel)] != nil { return enter() }
            channel.withLanes {
                lanes[ObjectIdentifier(channel)] = $0
                enter()
            }
        }
        order.reserving { enter() }
    }
}
