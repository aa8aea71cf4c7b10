import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The timers and the leases according to a history. It is kept apart from the sequencer's tables, and in the simplest way.
struct RequestTruth {
    private struct Timer {
        var number: SequenceNumber
        var order: TimerOrder
        /// The lives of the stores that it is for.
        var lives: [SequenceNumber]
        /// The term of the entry that set it, and when that was by the clock of the term; nil if that is not known.
        var begun: (epoch: Epoch, time: Duration)?
        /// When it fires first, by the log's time.
        var due: Timestamp
        var firings = 0
    }

    private struct Claim {
        var number: SequenceNumber
        var session: Incarnation
        var epoch: Epoch
        var locks: Bool
    }

    private var timers: [Timer] = []
    private var lines: [StoreName: [Claim]] = [:]

    /// Where an entry stands.
    struct Place {
        var sequence: SequenceNumber
        var commit: Commit
        /// The time by the monotonic clock of the sequencer; nil if it is not known.
        var now: Duration?

        fileprivate var moment: (Epoch, Duration)? { now.map { (commit.epoch, $0) } }
    }

    // MARK: Timers

    /// An entry sets or ends a timer.
    ///
    /// - Parameters:
    ///   - payload: Its payload.
    ///   - place: Where it stands.
    ///   - life: The present life of a store.
    /// - Throws: What is wrong.
    mutating func takeTimer(
        _ payload: Bytes, at place: Place,
        _ life: (StoreName) -> SequenceNumber?
    ) throws(Violation) {
        guard let request = try? TimerRequest(payload: payload) else {
            throw Violation("order", "\(place.sequence) is no timer's request")
        }
        switch request {
        case .set(let order):
            let key = order.actions.targets[0].target
            timers.removeAll {
                order.key != nil && $0.order.key == order.key
                    && $0.order.actions.targets[0].target == key
            }
            let lives = order.actions.targets.map { row -> SequenceNumber in
                guard case .store(let name) = row.target else { return .zero }
                return row.life == .zero ? life(name) ?? .zero : row.life
            }
            let due =
                switch order.due {
                case .after(let delay): place.commit.timestamp + delay
                case .at(let time): time
                }
            timers.append(
                Timer(
                    number: place.sequence, order: order, lives: lives, begun: place.moment,
                    due: due))
        case .cancel(let key):
            guard
                let index = timers.firstIndex(where: {
                    $0.order.key == key.name && $0.order.actions.targets[0].target == key.target
                })
            else {
                throw Violation(
                    "P12", "\(place.sequence) cancels a timer that has fired or was never set")
            }
            timers.remove(at: index)
        }
    }

    /// A life of a store is over.
    ///
    /// - Returns: Whether a timer ends with it.
    mutating func dropped(_ life: SequenceNumber) -> Bool {
        let count = timers.count
        timers.removeAll { $0.lives.contains(life) }
        return timers.count < count
    }

    /// A batch is the firing of a timer.
    mutating func takeFiring(_ batch: Batch, at place: Place) throws(Violation) {
        let number = SequenceNumber(batch.firstCounter)
        guard let index = timers.firstIndex(where: { $0.number == number }) else {
            throw Violation(
                "P12", "\(place.sequence) is a firing of timer \(number), which has fired or ended")
        }
        let timer = timers[index]
        var targets = timer.order.actions.targets
        for row in targets.indices { targets[row].life = timer.lives[row] }
        try require(
            batch.targets == targets && batch.kind == timer.order.actions.kind
                && Array(batch.entries) == Array(timer.order.actions.entries), "P12",
            "\(place.sequence) is not what timer \(number) dispatches")
        if case .at(let time) = timer.order.due, place.commit.timestamp < time {
            throw Violation("P12", "timer \(number) fired before its time")
        }
        // Another term measures by the clock of another host. Later firings may count from the time of the commit, which
        // the log had later.
        if timer.firings == 0, let now = place.now, let begun = timer.begun,
            begun.epoch == place.commit.epoch, case .after(let delay) = timer.order.due
        {
            try require(
                now - begun.time >= delay, "P12",
                "timer \(number) fired after \(now - begun.time), and not after \(delay)")
        }
        if timer.order.interval == nil {
            timers.remove(at: index)
        } else {
            timers[index].firings += 1
        }
    }

    /// A timer that should have fired at the log's present time.
    func overdue(at timestamp: Timestamp, isFrozen: (StoreName) -> Bool) -> SequenceNumber? {
        timers.first { timer in
            let isHeld = timer.order.actions.targets.contains {
                guard case .store(let name) = $0.target else { return false }
                return isFrozen(name) || lines[name]?.first?.locks == true
            }
            return timer.firings == 0 && !isHeld && timer.due + .seconds(3) < timestamp
        }?.number
    }

    // MARK: Leases

    /// An entry claims or releases a lease.
    mutating func takeLease(
        _ payload: Bytes, at place: Place, of session: Incarnation
    ) throws(Violation) {
        switch try? LeaseRequest(payload: payload) {
        case .claim(let name, let locks)?:
            lines[name, default: []].append(
                Claim(
                    number: place.sequence, session: session, epoch: place.commit.epoch,
                    locks: locks))
        case .release(let claim)?:
            for name in lines.keys {
                lines[name]?.removeAll { $0.number == claim.sequence }
            }
        case nil:
            throw Violation("order", "\(place.sequence) is no lease's request")
        }
    }

    /// A session is not present any more.
    mutating func left(_ session: Incarnation) {
        for name in lines.keys { lines[name]?.removeAll { $0.session == session } }
    }

    /// Checks that no lock of another session keeps an entry out.
    func checkLocks(
        on target: Target, at place: Place, of session: Incarnation, under claim: StoreVersion?
    ) throws(Violation) {
        // What a copy of the log brought back was judged in another history.
        guard place.now != nil else { return }
        for (name, line) in lines where target.concerns(name) {
            guard let first = line.first, first.locks, first.session != session,
                first.number != claim?.sequence
            else { continue }
            throw Violation(
                "P13", "\(place.sequence) is for \(name), which \(first.session) has locked")
        }
    }

    /// Whether a claim holds its lease.
    func isHeld(_ claim: StoreVersion) -> Bool {
        lines.values.contains {
            $0.first?.number == claim.sequence && $0.first?.epoch == claim.epoch
        }
    }
}
