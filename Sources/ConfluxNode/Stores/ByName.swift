/// Values by name.
///
/// They are visited in the order of their names. So notices and their order follow from the log alone,
/// and never from the order of a hash table, which differs from process to process.
struct ByName<Key: Hashable & Comparable, Value> {
    private var table: [Key: Value] = [:]
    /// The keys of `values`, ascending.
    private var keys: [Key] = []
    /// The values in the order of their names.
    private(set) var values: [Value] = []

    subscript(key: Key) -> Value? {
        get { table[key] }
        set {
            let former = table[key]
            table[key] = newValue
            let index = keys.partitioningIndex { $0 >= key }
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
}
