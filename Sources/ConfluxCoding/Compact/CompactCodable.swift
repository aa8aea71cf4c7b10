/// An action that writes and reads itself in the compact coding: for those that come by the hundred thousand a
/// second.
///
/// `Codable` alone will do for every action, and is what the other coding uses. This is the same form of the same
/// value, in a tenth of the time: what `Codable` makes of an enum case is an object with one member, the case's
/// name, whose value is an object of its fields.
///
/// ```swift
/// enum Move: Codable, Sendable {
///     case stop
///     case go(speed: Int, to: String)
/// }
///
/// extension Move: CompactCodable {
///     func write(to output: inout CompactOutput) {
///         switch self {
///         case .stop:
///             output.beginCase("stop", fields: 0)
///         case .go(let speed, let place):
///             output.beginCase("go", fields: 2)
///             output.write(speed, forKey: "speed")
///             output.write(place, forKey: "to")
///         }
///     }
///
///     init(from input: inout CompactInput) throws(CompactMismatch) {
///         if input.isCase("go", fields: 2) {
///             self = .go(speed: try input.integer(forKey: "speed"), to: try input.string(forKey: "to"))
///         } else if input.isCase("stop", fields: 0) {
///             self = .stop
///         } else {
///             throw CompactMismatch()
///         }
///     }
/// }
/// ```
///
/// *What must hold*: the bytes are those that `Codable` has. So fields stand in the order of their keys' UTF-8
/// bytes, each once, and an optional that is nil is left out. A program that reads the action by `Codable` then
/// reads the same, as do the command line and the log. Test it with `CompactForm.difference(of:)` of
/// `ConfluxTesting`.
///
/// *What does not fit*: more than ``CompactOutput/keysMax`` keys, more than 512 bytes, bytes in another order than
/// ``init(from:)`` reads them. It is then left to `Codable`, which also says what is wrong with bytes.
public protocol CompactCodable: Codable {
    /// Writes the value. Called on any thread.
    ///
    /// - Parameter output: Gets one value.
    func write(to output: inout CompactOutput)

    /// Reads a value. Called on any thread, with bytes that anybody may have sent.
    ///
    /// - Parameter input: Has one value, which must be read to its end.
    /// - Throws: ``CompactMismatch`` where the bytes are not what is expected: `Codable` then reads them.
    init(from input: inout CompactInput) throws(CompactMismatch)
}

/// The bytes are not what a ``CompactCodable`` expects.
public struct CompactMismatch: Error, Sendable, Hashable {
    /// Makes one.
    @inlinable
    public init() {}
}
