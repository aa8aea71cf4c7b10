/// A node's identity in the log: the sequence number of the `joined` entry of its process.
public struct Incarnation: RawRepresentable, Hashable, Comparable, Sendable,
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
public struct Origin: Hashable, Sendable, CustomStringConvertible {
    /// The dispatching node.
    public let incarnation: Incarnation
    /// The number of the action among the node's actions: 1, 2, 3 … without holes.
    public let counter: UInt64

    /// Makes an origin.
    public init(incarnation: Incarnation, counter: UInt64) {
        self.incarnation = incarnation
        self.counter = counter
    }

    /// `incarnation:counter`.
    public var description: String { "\(incarnation):\(counter)" }
}
