/// The observers of a value, in the order in which they began. To add and to remove one costs the same however
/// many there are.
struct ObserverList<Root: Sendable> {
    /// *Invariant*: at most half of the places are empty, but of the first few.
    private(set) var slots: [(any ValueObserver<Root>)?] = []
    private var places: [ObjectIdentifier: Int] = [:]
    /// Below so many places empty ones stay.
    private static var sparseMax: Int { 16 }

    var isEmpty: Bool { places.isEmpty }

    mutating func append(_ observer: any ValueObserver<Root>) {
        places[ObjectIdentifier(observer)] = slots.count
        slots.append(observer)
    }

    /// - Returns: The observer, to be let go outside of any lock; nil if it is not in the list.
    mutating func remove(_ observer: any ValueObserver<Root>) -> (any ValueObserver<Root>)? {
        guard let place = places.removeValue(forKey: ObjectIdentifier(observer)) else { return nil }
        let removed = slots[place]
        slots[place] = nil
        if slots.count > max(Self.sparseMax, 2 * places.count) { compact() }
        return removed
    }

    private mutating func compact() {
        slots.removeAll { $0 == nil }
        for (place, observer) in slots.enumerated() {
            if let observer { places[ObjectIdentifier(observer)] = place }
        }
    }
}
