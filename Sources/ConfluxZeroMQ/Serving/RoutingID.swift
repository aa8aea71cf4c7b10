/// Identifies one connection of a serving socket. A peer that reconnects gets another one.
public struct RoutingID: Hashable, Sendable, CustomStringConvertible {
    /// A number that no other connection has at the same time.
    public let number: UInt32

    /// Makes the id with this number.
    public init(number: UInt32) {
        self.number = number
    }

    /// The number.
    public var description: String { String(number) }
}
