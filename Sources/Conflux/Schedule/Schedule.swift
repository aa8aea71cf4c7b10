import ConfluxVocabulary

/// What is to happen to a model later: a part of the model itself, which its reducer changes.
///
/// ```swift
/// struct Hall: ScheduledModel {
///     static let name = "hall"
///     static let timePassed = Action.timePassed
///     var holders: [Int: String] = [:]
///     var schedule = Schedule<Action>()
///     enum Action: Codable, Sendable { case hold(seat: Int, by: String), pay(seat: Int), expire(seat: Int), timePassed }
///
///     mutating func apply(_ action: Action, _ context: ActionContext) {
///         switch action {
///         case .hold(let seat, let name):
///             holders[seat] = name
///             schedule.set(.expire(seat: seat), after: .seconds(30), key: "hold-\(seat)", in: context)
///         case .pay(let seat): schedule.cancel("hold-\(seat)")
///         case .expire(let seat): holders[seat] = nil
///         case .timePassed: break
///         }
///     }
/// }
/// ```
///
/// As a part of the model, it is the same in every replica, and in every snapshot. ``ScheduledModel`` says when an
/// item fires.
///
/// There is room for ``countMax`` items. To set one costs O(n) in their number.
public struct Schedule<Action: Sendable>: Sendable {
    /// An action that is to happen later.
    public struct Item: Sendable {
        /// By what it is cancelled or replaced.
        public let key: String
        /// When it fires at the earliest, by the time of the log.
        public internal(set) var due: Timestamp
        /// The time from one firing to the next; nil if it fires once.
        public let interval: Duration?
        /// What happens then.
        public let action: Action
        /// The entry with which it fires. *Use*: what is set while items fire has none, and so waits for the next entry.
        /// It is no part of the item's value, and no encoding has it.
        var mark: SequenceNumber?
    }

    /// The most items.
    public static var countMax: Int { 1_024 }
    /// The least time from one firing to the next.
    public static var intervalMin: Duration { .milliseconds(10) }
    /// The greatest time until an item fires, or fires again: a hundred years.
    public static var spanMax: Duration { .seconds(100 * 365 * 86_400) }

    /// All items, in the order in which they fire. Of two with the same time, the one that was set first is first.
    ///
    /// *Invariant*: each key is there once.
    public private(set) var items: [Item] = []
    /// The time of the last entry that changed the model; nil if it was read from a snapshot since. *Use*: a node learns
    /// from it what time it is in the log. It is no part of the value either.
    var latest: Timestamp?

    /// Makes a schedule without items.
    public init() {}

    /// Makes a schedule of items in the order in which they fire, each key once.
    init(_ items: [Item]) { self.items = items }

    /// Whether nothing is to happen.
    public var isEmpty: Bool { items.isEmpty }
    /// Whether no item with another key can be set.
    public var isFull: Bool { items.count >= Self.countMax }
    /// When the next item fires at the earliest.
    public var nextDue: Timestamp? { items.first?.due }

    /// The item with a key.
    public subscript(key: String) -> Item? { items.first { $0.key == key } }

    /// Throws if there is no room for more items. Call it in the model's `check`, so that an action whose item could not
    /// be set is refused:
    ///
    /// ```swift
    /// func check(_ action: Action, _ context: ActionContext) throws {
    ///     if case .hold = action { try schedule.requireRoom() }
    /// }
    /// ```
    ///
    /// - Parameter count: For how many items.
    /// - Throws: ``StoreError`` with the code `scheduleFull`.
    public func requireRoom(for count: Int = 1) throws(StoreError) {
        if items.count + count <= Self.countMax { return }
        throw StoreError(
            .scheduleFull,
            """
            The schedule has \(items.count) items, and room for \(Self.countMax). Wait until some of them have fired, or \
            spread the work over several stores.
            """)
    }

    /// Has an action happen after some time. An item with the same key is replaced.
    ///
    /// If it is called while items fire, the new one fires at the earliest with the next entry.
    ///
    /// - Parameters:
    ///   - action: What happens then.
    ///   - delay: When, from the time of the present action; at once means with the next entry. It is at most
    ///     ``spanMax``, and at least zero.
    ///   - interval: The time from one firing to the next; nil if it fires once. It counts from the time that was
    ///     intended, so firings don't drift. It is at least ``intervalMin``, and at most ``spanMax``.
    ///   - key: What to cancel or replace it by.
    ///   - context: The context of the present action.
    /// - Returns: Whether it was set. If not, the schedule is full, and nothing has changed.
    @discardableResult
    public mutating func set(
        _ action: Action, after delay: Duration, every interval: Duration? = nil, key: String,
        in context: ActionContext
    ) -> Bool {
        let delay = min(max(delay, .zero), Self.spanMax)
        return set(action, at: context.timestamp + delay, every: interval, key: key)
    }

    /// Has an action happen at a time of day. An item with the same key is replaced.
    ///
    /// - Parameters:
    ///   - action: What happens then.
    ///   - time: When, by the time of the log; with the next entry if it has passed.
    ///   - interval: As for `set(_:after:every:key:in:)`.
    ///   - key: What to cancel or replace it by.
    /// - Returns: Whether it was set, as for `set(_:after:every:key:in:)`.
    @discardableResult
    public mutating func set(
        _ action: Action, at time: Timestamp, every interval: Duration? = nil, key: String
    ) -> Bool {
        let former = items.firstIndex { $0.key == key }
        if let former { items.remove(at: former) } else if isFull { return false }
        insert(
            Item(
                key: key, due: time,
                interval: interval.map { min(max($0, Self.intervalMin), Self.spanMax) },
                action: action))
        return true
    }

    /// Removes an item, which then doesn't fire.
    ///
    /// - Parameter key: Its key.
    /// - Returns: Whether there was one.
    @discardableResult
    public mutating func cancel(_ key: String) -> Bool {
        guard let index = items.firstIndex(where: { $0.key == key }) else { return false }
        items.remove(at: index)
        return true
    }

    /// Puts an item behind all that are due no later.
    private mutating func insert(_ item: Item) {
        items.insert(item, at: items.partitioningIndex { $0.due > item.due })
    }

    // MARK: Firing

    /// Whether an item is due.
    func isDue(at time: Timestamp) -> Bool { items.first.map { $0.due <= time } ?? false }

    /// Marks what fires with an entry.
    mutating func mark(at time: Timestamp, for entry: SequenceNumber) {
        for index in items.indices {
            guard items[index].due <= time else { break }
            items[index].mark = entry
        }
    }

    /// Takes out the first item that is marked for the entry. One that repeats is set for its next time.
    mutating func takeMarked(at time: Timestamp, for entry: SequenceNumber) -> Item? {
        guard let index = items.firstIndex(where: { $0.mark == entry || $0.due > time }),
            items[index].due <= time
        else { return nil }
        var item = items.remove(at: index)
        item.mark = nil
        if let interval = item.interval {
            var next = item
            next.due = item.due.next(after: time, every: interval)
            insert(next)
        }
        return item
    }
}

extension Timestamp {
    /// The first time after another one, in steps from this one, which is no later.
    fileprivate func next(after time: Timestamp, every interval: Duration) -> Timestamp {
        let step = UInt64(interval.wholeNanoseconds)
        // The difference of two timestamps is less than 2 to the 64th nanoseconds.
        let passed = UInt64(bitPattern: time.rawValue &- rawValue) % step
        return time + .nanoseconds(Int64(step - passed))
    }
}

// MARK: Comparing and encoding

extension Schedule.Item: Equatable where Action: Equatable {
    /// Whether two items have the same key, times and action.
    public static func == (left: Self, right: Self) -> Bool {
        left.key == right.key && left.due == right.due && left.interval == right.interval
            && left.action == right.action
    }
}

extension Schedule: Equatable where Action: Equatable {
    /// Whether two schedules have the same items in the same order.
    public static func == (left: Self, right: Self) -> Bool { left.items == right.items }
}
