/// Future events, by time. Events at the same time keep the order in which they were scheduled. A binary
/// heap.
struct Timeline<Event> {
    private struct Item {
        var at: Duration
        var order: UInt64
        var event: Event

        func isBefore(_ other: Item) -> Bool {
            at != other.at ? at < other.at : order < other.order
        }
    }

    private var items: [Item] = []
    private var nextOrder: UInt64 = 0

    var isEmpty: Bool { items.isEmpty }

    mutating func schedule(_ event: Event, at time: Duration) {
        items.append(Item(at: time, order: nextOrder, event: event))
        nextOrder += 1
        var child = items.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard items[child].isBefore(items[parent]) else { return }
            items.swapAt(child, parent)
            child = parent
        }
    }

    mutating func takeFirst() -> (at: Duration, event: Event)? {
        guard let first = items.first else { return nil }
        let last = items.removeLast()
        guard !items.isEmpty else { return (first.at, first.event) }
        items[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < items.count {
                if items[child].isBefore(items[least]) { least = child }
            }
            guard least != parent else { break }
            items.swapAt(parent, least)
            parent = least
        }
        return (first.at, first.event)
    }
}
