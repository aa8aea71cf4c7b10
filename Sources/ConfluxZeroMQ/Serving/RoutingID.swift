/// The name by which a serving socket knows one connection. A connection that breaks and comes back
/// has another one.
public struct RoutingID: Hashable, Sendable, CustomStringConvertible {
    /// A number that no other connection has at the same time.
    public let number: UInt32

    /// The connection with a number.
    public init(number: UInt32) {
        self.number = number
    }

    /// The number.
    public var description: String { String(number) }
}
