/// Values by name.
///
/// They are visited only in the order of their names. So what is told, and when, depends on the log
/// alone, and not on the order of a hash table, which differs from process to process.
struct ByName<Key: Hashable & Comparable, Value> {
    private var table: [Key: Value] = [:]
    /// The keys of `values`, ascending.
    private var keys: [Key] = []
    /// In the order of their names.
    private(set) var values: [Value] = []

    subscript(key: Key) -> Value? {
        get { table[key] }
        set {
            let former = table[key]
            table[key] = newValue
            let index = index(from: key)
            switch (former, newValue) {
            case (nil, let value?):
                keys.insert(key, at: index)
                values.insert(value, at: index)
            case (.some, let value?): values[index] = value
            case (.some, nil):
                keys.remove(at: index)
                values.remove(at: index)
            case (nil, nil): break
            }
        }
    }

    var isEmpty: Bool { keys.isEmpty }

    mutating func removeAll() { self = ByName() }

    /// The index of the first key that is not below this one.
    private func index(from key: Key) -> Int {
        var low = 0
        var high = keys.count
        while low < high {
            let middle = (low + high) / 2
            if keys[middle] < key { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
