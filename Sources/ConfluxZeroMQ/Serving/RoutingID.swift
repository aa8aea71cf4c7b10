/// The name by which a serving socket knows one connection. A connection that breaks and comes back
/// has another one.
public struct RoutingID: Hashable, Sendable, CustomStringConvertible {
    /// libzmq makes it of a zero and a number, which it counts up.
    static let byteCount = 5

    /// A number that no other connection has at the same time.
    public let number: UInt32

    /// The connection with a number.
    public init(number: UInt32) {
        self.number = number
    }

    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount, bytes[0] == 0 else { return nil }
        number = bytes.loadUnaligned(fromByteOffset: 1, as: UInt32.self)
    }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 1) { bytes in
            bytes[0] = 0
            bytes.storeBytes(of: number, toByteOffset: 1, as: UInt32.self)
            return body(UnsafeRawBufferPointer(bytes))
        }
    }

    /// The number.
    public var description: String { String(number) }
}
