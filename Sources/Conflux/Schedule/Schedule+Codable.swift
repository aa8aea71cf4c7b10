import ConfluxVocabulary

extension Schedule.Item {
    private enum Key: String, CodingKey { case key, due, interval, action }
}

extension Schedule.Item: Encodable where Action: Encodable {
    /// Encodes the item; the interval in nanoseconds.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(key, forKey: .key)
        try container.encode(due, forKey: .due)
        try container.encodeIfPresent(
            interval?.wholeNanoseconds, forKey: .interval)
        try container.encode(action, forKey: .action)
    }
}

extension Schedule.Item: Decodable where Action: Decodable {
    /// Decodes an item.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        key = try container.decode(String.self, forKey: .key)
        due = try container.decode(Timestamp.self, forKey: .due)
        let nanoseconds = try container.decodeIfPresent(Int64.self, forKey: .interval)
        interval = nanoseconds.map { .nanoseconds($0) }
        action = try container.decode(Action.self, forKey: .action)
        if let interval, interval < Schedule.intervalMin {
            throw DecodingError.dataCorruptedError(
                forKey: .interval, in: container,
                debugDescription: "expected an interval of \(Schedule.intervalMin) or more")
        }
    }
}

extension Schedule: Encodable where Action: Encodable {
    /// Encodes the items as a list, in the order in which they fire. So replicas that differ only in how they came to it
    /// have the same encoding.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(items)
    }
}

extension Schedule: Decodable where Action: Decodable {
    /// Decodes a schedule.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let items = try container.decode([Item].self)
        let isOrdered = zip(items, items.dropFirst()).allSatisfy { $0.due <= $1.due }
        guard isOrdered, Set(items.map(\.key)).count == items.count else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "expected items in the order of their times, and each key once")
        }
        self.init(items)
    }
}

extension Schedule: CustomReflectable {
    /// Shows the items by their keys.
    public var customMirror: Mirror {
        Mirror(
            self, children: items.map { (label: $0.key, value: $0 as Any) }, displayStyle: .struct)
    }
}

extension Schedule.Item: CustomReflectable {
    /// Shows what the item's value consists of.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["due": due, "interval": interval as Any, "action": action],
            displayStyle: .struct)
    }
}
