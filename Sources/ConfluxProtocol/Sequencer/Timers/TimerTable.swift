import ConfluxVocabulary

/// The timers of a log. Rule 26 is implemented here.
///
/// Setting, cancelling and firing a timer are entries of the log. So the table is a function of the log: a sequencer
/// that starts or takes over knows each timer, and which ones have fired. A firing is a batch without a session whose
/// counter is the timer's number. Replicas apply it like any other batch.
///
///     set ──▶ pending ──fire──▶ over, or pending again if it repeats
///                └────cancel────▶ over
///
/// The table changes when an entry is admitted, so that a cancellation and a firing never both succeed. But what an
/// entry's time decides is known only once the entry is in the log: see ``land(through:at:)``.
struct TimerTable: Sendable, Equatable {
    struct Timer: Sendable, Equatable {
        /// The number of the entry that set it.
        let number: SequenceNumber
        /// The name of the key that set it; nil if there were no keys.
        let owner: Name?
        /// What it does. The rows of single stores name their lives.
        var order: TimerOrder
        /// When it fires next.
        var due: Timestamp
        /// Whether `due` is known. It is not until the entry that sets it, or its last firing, is in the log.
        var isDueKnown = true

        init(number: SequenceNumber, owner: Name?, order: TimerOrder, due: Timestamp) {
            self.number = number
            self.owner = owner
            self.order = order
            self.due = due
        }

        /// Whether its entry is in the log.
        var isSet: Bool { isDueKnown || due != Timestamp(0) }

        /// The bytes for which it counts.
        var byteCount: Int { order.actions.encoded.count + (order.key?.utf8.count ?? 0) + 128 }
    }

    /// An entry whose time is awaited.
    private struct Awaited: Sendable, Equatable {
        var entry: SequenceNumber
        var timer: SequenceNumber
    }

    /// The most timers, which the keys share.
    static let countMax = 200_000
    /// The most bytes of timers, which the keys share. They are in memory, and in each checkpoint.
    static let bytesMax = 64 << 20

    private(set) var timers = TreeMap<SequenceNumber, Timer>()
    /// *Invariant*: exactly the timers with keys.
    private var byKey: [TimerKey: SequenceNumber] = [:]
    /// Ascending by entry.
    private var awaited: [Awaited] = []
    private(set) var counts = Shares<Name>()
    private(set) var bytes = Shares<Name>()

    subscript(number: SequenceNumber) -> Timer? { timers[number] }

    subscript(key: TimerKey) -> Timer? { byKey[key].flatMap { timers[$0] } }

    /// Whether an owner may set another timer, beside some that it sets at the same time.
    ///
    /// - Parameters:
    ///   - order: What the timer does. If it replaces one of its owner that is as large, there is room in any case.
    ///   - owner: Its owner.
    ///   - addedCount: How many others are set. It receives this one, if there is room for it.
    ///   - addedBytes: Their bytes.
    /// - Returns: Whether there is room for all of them.
    func hasRoom(
        for order: TimerOrder, of owner: Name?, besideCount addedCount: inout Int,
        bytes addedBytes: inout Int
    ) -> Bool {
        let timer = Timer(number: .zero, owner: owner, order: order, due: Timestamp(0))
        if let replaced = order.scopedKey.flatMap({ self[$0] }), replaced.owner == owner,
            replaced.byteCount >= timer.byteCount
        {
            return true
        }
        guard counts.hasRoom(for: owner, addedCount + 1, of: Self.countMax),
            bytes.hasRoom(for: owner, addedBytes + timer.byteCount, of: Self.bytesMax)
        else { return false }
        addedCount += 1
        addedBytes += timer.byteCount
        return true
    }

    // MARK: Entries

    /// An entry sets a timer. A timer with the same key ends.
    mutating func set(_ order: TimerOrder, at number: SequenceNumber, by owner: Name?) {
        if let key = order.scopedKey { cancel(key) }
        var timer = Timer(number: number, owner: owner, order: order, due: Timestamp(0))
        timer.isDueKnown = false
        insert(timer)
        awaited.append(Awaited(entry: number, timer: number))
    }

    /// An entry ends the timer with a key.
    mutating func cancel(_ key: TimerKey) {
        if let number = byKey[key] { end(number) }
    }

    /// A timer is over.
    mutating func end(_ number: SequenceNumber) {
        guard let timer = timers.removeValue(forKey: number) else { return }
        if let key = timer.order.scopedKey { byKey[key] = nil }
        counts.remove(of: timer.owner)
        bytes.remove(timer.byteCount, of: timer.owner)
    }

    /// A life of a store is over. A timer for it is of no use to the next store of the name.
    ///
    /// - Returns: The timers that end.
    /// - Complexity: O(*n*) in the number of timers.
    @discardableResult
    mutating func end(timersOf store: StoreName, life: SequenceNumber) -> [SequenceNumber] {
        let ended = timers.values.filter { timer in
            timer.order.actions.targets.contains { $0.target == .store(store) && $0.life == life }
        }.map(\.number)
        for number in ended { end(number) }
        return ended
    }

    /// An entry is the firing of a timer.
    mutating func fire(_ number: SequenceNumber, at entry: SequenceNumber) {
        guard timers[number]?.order.interval != nil else { return end(number) }
        timers[number]?.isDueKnown = false
        awaited.append(Awaited(entry: entry, timer: number))
    }

    /// The entries up to a number are in the log, and the last commit has this time.
    ///
    /// - Returns: The timers of which it is known now when they fire next.
    @discardableResult
    mutating func land(through last: SequenceNumber, at timestamp: Timestamp) -> [SequenceNumber] {
        guard let first = awaited.first, first.entry <= last else { return [] }
        let landed = awaited.prefix { $0.entry <= last }
        awaited.removeFirst(landed.count)
        for entry in landed { timers[entry.timer]?.land(entry.entry, at: timestamp) }
        return landed.map(\.timer).filter { timers[$0]?.isDueKnown == true }
    }

    // MARK: Checkpoints

    /// Adds a timer of a checkpoint.
    ///
    /// - Returns: false if another one has its number or its key.
    mutating func restore(_ timer: Timer) -> Bool {
        guard timer.order.fault == nil, timers[timer.number] == nil,
            timer.order.scopedKey.map({ byKey[$0] == nil }) ?? true
        else { return false }
        insert(timer)
        return true
    }

    private mutating func insert(_ timer: Timer) {
        var timer = timer
        // A slice would keep the whole frame or commit in memory.
        timer.order.actions = timer.order.actions.copied
        timers[timer.number] = timer
        if let key = timer.order.scopedKey { byKey[key] = timer.number }
        counts.add(of: timer.owner)
        bytes.add(timer.byteCount, of: timer.owner)
    }

    func checkInvariants() throws(BrokenInvariant) {
        let keyed = timers.values.compactMap { $0.order.scopedKey }
        try hold(keyed.count == byKey.count, "\(keyed.count) timers have keys, not \(byKey.count)")
        try hold(
            keyed.allSatisfy { byKey[$0].map { timers[$0] != nil } == true },
            "a key finds no timer")
        try hold(counts.total == timers.count, "\(timers.count) timers, not \(counts.total)")
        let byteCount = timers.values.reduce(0) { $0 + $1.byteCount }
        try hold(bytes.total == byteCount, "\(byteCount) bytes of timers, not \(bytes.total)")
        let unknown = timers.values.count { !$0.isDueKnown }
        try hold(unknown <= awaited.count, "\(unknown) timers wait for \(awaited.count) entries")
    }
}

extension TimerTable.Timer {
    /// An entry of the timer is in the log.
    fileprivate mutating func land(_ entry: SequenceNumber, at timestamp: Timestamp) {
        isDueKnown = true
        guard entry != number, let interval = order.interval else {
            due =
                switch order.due {
                case .after(let span): timestamp.advanced(by: span)
                case .at(let time): time
                }
            return
        }
        // It counts from the time that was intended. Times that passed meanwhile are left out.
        let late = max(.zero, due.distance(to: timestamp))
        due = due.advanced(by: interval * (Int(late / interval) + 1))
    }
}
