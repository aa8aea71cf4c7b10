/// Elements in the order in which they came. Adding or removing one takes constant time on average.
struct IdentityList<Element> {
    /// *Invariant*: at most half of the slots are empty, unless there are only a few slots.
    private(set) var slots: [Element?] = []
    private var keys: [ObjectIdentifier?] = []
    private var places: [ObjectIdentifier: Int] = [:]
    /// Up to this many slots, empty ones stay.
    private static var sparseMax: Int { 16 }

    var isEmpty: Bool { places.isEmpty }

    /// Adds an element.
    ///
    /// - Parameters:
    ///   - element: The element.
    ///   - key: Identifies the element, for its removal; no other element has it.
    mutating func append(_ element: Element, as key: ObjectIdentifier) {
        places[key] = slots.count
        slots.append(element)
        keys.append(key)
    }

    /// - Returns: The element, to be released outside of any lock; nil if it is not in the list.
    mutating func remove(_ key: ObjectIdentifier) -> Element? {
        guard let place = places.removeValue(forKey: key) else { return nil }
        let removed = slots[place]
        (slots[place], keys[place]) = (nil, nil)
        if slots.count > max(Self.sparseMax, 2 * places.count) { compact() }
        return removed
    }

    private mutating func compact() {
        slots.removeAll { $0 == nil }
        keys.removeAll { $0 == nil }
        for (place, key) in keys.enumerated() {
            if let key { places[key] = place }
        }
    }
}
