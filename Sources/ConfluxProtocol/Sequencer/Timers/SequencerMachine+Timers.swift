import ConfluxVocabulary

/// Timers in the log: how entries that set or cancel them are judged, and when they fire.
extension SequencerMachine {
    /// How many timers fire before other work has its turn.
    private static let firingsPerTurnMax = 256
    /// How long a timer waits that can't fire now, since its store is frozen, for example.
    private static let postponement = Duration.seconds(1)

    // MARK: Entries

    /// Why a timer can't be set or cancelled. The right to dispatch is needed for all that it dispatches.
    ///
    /// - Parameters:
    ///   - request: What is asked. It receives the lives of the stores.
    ///   - principal: Who asks.
    ///   - count: How many timers the requests before this one in its batch add. It receives this one's.
    ///   - bytes: The bytes of these.
    /// - Returns: The reason; nil if it can.
    mutating func judge(
        _ request: inout TimerRequest, for principal: Principal, besideCount count: inout Int,
        bytes: inout Int
    ) -> Fault? {
        switch request {
        case .set(let order):
            if let text = order.fault { return Fault(code: .malformed, message: text) }
            do throws(WireError) {
                guard try order.actions.validate(payloadBytesMax: limits.payloadBytesMax).isEmpty
                else {
                    return Fault(code: .payloadTooLarge, message: "the timer's action is too large")
                }
            } catch {
                return Fault(code: .malformed, message: error.message)
            }
            for row in order.actions.targets {
                if let fault = fault(of: row, hasEntries: true, for: principal) { return fault }
            }
            guard
                timers.hasRoom(
                    for: order, of: principal.name, besideCount: &count, bytes: &bytes)
            else {
                let text =
                    "\(timers.counts.total) timers of \(timers.bytes.total) bytes are set, and no more are taken from "
                    + "this key; cancel some (conflux timers), or wait until they have fired"
                return Fault(code: .tableFull, message: text)
            }
            request = .set(directory.naming(order))
            return nil
        case .cancel(let key):
            guard principal.rights.allow(.dispatch, key.target) else {
                return Fault(
                    code: .notAllowed, message: principal.denial(of: .dispatch, key.target))
            }
            guard timers[key] != nil else {
                let text =
                    "no timer for \(key.target) has this key: it has fired, was cancelled, or was never set"
                return Fault(code: .noSuchTimer, message: text)
            }
            return nil
        }
    }

    /// An entry that sets or ends a timer is admitted.
    mutating func admit(_ request: TimerRequest, at entry: SequenceNumber, by owner: Name?) {
        let ended: TimerTable.Timer? =
            switch request {
            case .set(let order): order.scopedKey.flatMap { timers[$0] }
            case .cancel(let key): timers[key]
            }
        if let ended { timerSchedule.remove(ended.number) }
        if case .set(let order) = request {
            for row in order.actions.targets { directory.see(row.target, by: owner) }
        }
        timers.apply(request, at: entry, by: owner)
    }

    /// A life of a store is about to end, and with it the timers that are for it, perhaps besides others.
    mutating func endTimers(of store: StoreName, life: SequenceNumber) {
        for number in timers.end(timersOf: store, life: life) { timerSchedule.remove(number) }
    }

    // MARK: Firing

    /// The term begins. What was due while no sequencer served fires now, once.
    mutating func scheduleTimers(at now: Duration, _ timestamp: Timestamp) {
        for number in timers.timers.keys { schedule(number, at: now, timestamp) }
    }

    /// Entries are in the log. From now on it is known when their timers fire.
    mutating func landTimers(
        through last: SequenceNumber, at now: Duration, _ timestamp: Timestamp
    ) {
        for number in timers.land(through: last, at: timestamp) where !timerSchedule.has(number) {
            schedule(number, at: now, timestamp)
        }
    }

    private mutating func schedule(
        _ number: SequenceNumber, at now: Duration, _ timestamp: Timestamp
    ) {
        guard let timer = timers[number], timer.isDueKnown else { return }
        if case .at = timer.order.due {
            timerSchedule.set(number, at: timer.due, now: now)
        } else {
            timerSchedule.set(number, after: timestamp.distance(to: timer.due), at: now)
        }
    }

    /// Admits the firings that are due.
    mutating func fireTimers(at now: Moment, into effects: inout [SequencerEffect]) {
        guard !isLogNearlyFull, let next = timerSchedule.nextDeadline, next <= now.monotonic
        else { return }
        let timestamp = stamp(at: now, into: &effects)
        for _ in 0..<Self.firingsPerTurnMax {
            guard let number = timerSchedule.due(at: now.monotonic, timestamp),
                let timer = timers[number]
            else { return }
            fire(timer, at: now.monotonic, into: &effects)
        }
    }

    private mutating func fire(
        _ timer: TimerTable.Timer, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        // Its last firing is not in the log yet.
        if !timer.isDueKnown {
            if let interval = timer.order.interval,
                timerSchedule.repeat(timer.number, every: interval, at: now)
            {
                return
            }
            timerSchedule.remove(timer.number)
            return
        }
        let batch = timer.order.actions
        let limit = timer.owner.flatMap { settings.rates[$0] }
        guard fitsCommit(bytes: batch.encoded.count),
            pace.allows(timer.owner, limit, within: Pace.timersSpan, at: now)
        else {
            timerSchedule.postpone(timer.number, by: settings.beatInterval, at: now)
            return
        }
        // A store may be frozen.
        guard batch.targets.allSatisfy({ fault(of: $0, hasEntries: true) == nil }) else {
            timerSchedule.postpone(timer.number, by: Self.postponement, at: now)
            return
        }
        guard storeHoldingUp(batch) == nil,
            batch.targets.allSatisfy({ leases.lock(on: $0.target, for: .none, under: []) == nil }),
            admission.admit(bytes: batch.encoded.count, by: settings)
        else {
            timerSchedule.postpone(timer.number, by: settings.beatInterval, at: now)
            return
        }
        let entry = pipeline.admit(batch.firing(timer.number), from: .none)
        pace.count(batch.count, of: timer.owner, limit, at: now)
        timers.fire(timer.number, at: entry)
        if let interval = timer.order.interval,
            timerSchedule.repeat(timer.number, every: interval, at: now)
        {
            return
        }
        timerSchedule.remove(timer.number)
    }

    // MARK: Lists

    /// The most timers in one answer.
    static let timersListedMax = 1_000
    /// About how many bytes of them one answer has at most.
    static let timersListedBytesMax = 1 << 20

    /// The timers behind a number whose actions a peer may dispatch or read, ascending.
    func list(behind number: SequenceNumber, for rights: Rights) -> [TimerStatus] {
        var list: [TimerStatus] = []
        var bytes = 0
        for (_, timer) in timers.timers.elements(behind: number) {
            guard list.count < Self.timersListedMax, bytes < Self.timersListedBytesMax else {
                break
            }
            guard timer.isSet else { continue }
            let targets = timer.order.actions.targets
            guard
                targets.allSatisfy({
                    rights.allow(.dispatch, $0.target) || rights.allowReading($0.target)
                })
            else { continue }
            list.append(timer.status)
            bytes += 256 + targets.count * 2 * Name.lengthMax
        }
        return list
    }
}

extension TimerTable {
    /// An entry is admitted, or in the log.
    mutating func apply(_ request: TimerRequest, at entry: SequenceNumber, by owner: Name?) {
        switch request {
        case .set(let order): set(order, at: entry, by: owner)
        case .cancel(let key): cancel(key)
        }
    }
}

extension TimerTable.Timer {
    fileprivate var status: TimerStatus {
        TimerStatus(
            number: number, owner: owner, key: order.key,
            targets: order.actions.targets.map(\.target), due: due, interval: order.interval)
    }
}

extension StoreDirectory {
    /// An order whose rows name the lives of their stores, so that a timer is for no later store of the name.
    func naming(_ order: TimerOrder) -> TimerOrder {
        var targets = order.actions.targets
        for (row, target) in targets.enumerated() where target.life == .zero {
            guard case .store(let name) = target.target else { continue }
            targets[row].life = admittedLife(of: name)?.life ?? .zero
        }
        guard targets != order.actions.targets else { return order }
        var order = order
        order.actions = order.actions.with(targets, firstCounter: order.actions.firstCounter)
        return order
    }
}

extension Batch {
    /// The firing of a timer that has these actions. Its counter is the timer's number.
    fileprivate func firing(_ timer: SequenceNumber) -> Batch {
        with(targets, firstCounter: timer.rawValue)
    }

    func with(
        _ targets: [BatchTarget], firstCounter: UInt64, settled: UInt64 = 0
    ) -> Batch {
        let outline = BatchOutline(
            firstCounter: firstCounter, settled: settled, kind: kind, count: count)
        return Batch(outline, targets, entries: entries)
    }
}
