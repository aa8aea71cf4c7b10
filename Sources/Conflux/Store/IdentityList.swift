/// Elements in the order in which they came. To add one and to remove one costs the same however many there are.
struct IdentityList<Element> {
    /// *Invariant*: at most half of the places are empty, but of the first few.
    private(set) var slots: [Element?] = []
    private var keys: [ObjectIdentifier?] = []
    private var places: [ObjectIdentifier: Int] = [:]
    /// Below so many places empty ones stay.
    private static var sparseMax: Int { 16 }

    var isEmpty: Bool { places.isEmpty }

    /// Adds an element.
    ///
    /// - Parameters:
    ///   - element: The element.
    ///   - key: What it is removed by; no other element's.
    mutating func append(_ element: Element, as key: ObjectIdentifier) {
        places[key] = slots.count
        slots.append(element)
        keys.append(key)
    }

    /// - Returns: The element, to be let go outside of any lock; nil if it is not in the list.
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
