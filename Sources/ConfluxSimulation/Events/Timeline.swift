import ConfluxVocabulary

/// Future events, by time. Events at the same time keep the order in which they were scheduled.
struct Timeline<Event> {
    private struct Item: Comparable {
        var at: Duration
        var order: UInt64
        var event: Event

        static func < (one: Item, other: Item) -> Bool {
            one.at != other.at ? one.at < other.at : one.order < other.order
        }

        static func == (one: Item, other: Item) -> Bool { one.order == other.order }
    }

    private var items = Heap<Item>()
    private var nextOrder: UInt64 = 0

    mutating func schedule(_ event: Event, at time: Duration) {
        items.insert(Item(at: time, order: nextOrder, event: event))
        nextOrder += 1
    }

    mutating func takeFirst() -> (at: Duration, event: Event)? {
        items.popFirst().map { ($0.at, $0.event) }
    }
}
