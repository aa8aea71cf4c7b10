/// A node's identity in the log: the sequence number of the `joined` entry of its process.
///
/// It is encoded as that number, in JSON `3`. This form is stable.
public struct Incarnation: RawRepresentable, Hashable, Comparable, Codable, Sendable,
    CustomStringConvertible
{
    /// The sequence number of the `joined` entry; 0 is `none`.
    public let rawValue: UInt64

    /// Makes the incarnation that the `joined` entry with this number began.
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Makes the incarnation that the `joined` entry with this number began.
    public init(_ value: UInt64) {
        self.rawValue = value
    }

    /// No node: the origin of the log's own entries, and of actions without a node.
    public static let none = Incarnation(0)

    /// Whether the left process joined earlier.
    public static func < (left: Incarnation, right: Incarnation) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The number in decimal digits.
    public var description: String { String(rawValue) }
}

/// Who dispatched an action, and which of that node's actions it is.
///
/// It is encoded as it is printed, in JSON `"3:7"`: action 7 of the node that entry 3 let in. This form is stable.
public struct Origin: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The dispatching node.
    public let incarnation: Incarnation
    /// The number of the action among the node's actions: 1, 2, 3 … without gaps.
    public let counter: UInt64

    /// Makes an origin.
    public init(incarnation: Incarnation, counter: UInt64) {
        self.incarnation = incarnation
        self.counter = counter
    }

    /// Parses `incarnation:counter`, as an origin is printed; nil for anything else.
    ///
    /// - Parameter text: Two numbers in decimal digits.
    public init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let incarnation = UInt64(parts[0]),
            let counter = UInt64(parts[1])
        else { return nil }
        self.init(incarnation: Incarnation(incarnation), counter: counter)
        // One origin has one text: no signs, no leading zeros.
        guard description == text else { return nil }
    }

    /// Reads what ``encode(to:)`` writes.
    public init(from decoder: any Decoder) throws {
        self = try decoder.text("an origin, as 3:7", Self.init)
    }

    /// Writes the text that an origin is printed as.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// `incarnation:counter`.
    public var description: String { "\(incarnation):\(counter)" }
}
