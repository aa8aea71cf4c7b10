import Foundation

/// An action that writes and reads itself in the compact coding. Use it for actions that occur hundreds of
/// thousands of times a second.
///
/// `Codable` alone is enough for every action, and the JSON coding always uses it. This protocol produces the
/// same bytes in a tenth of the time. The macro ``CompactAction()`` writes it for you; write it by hand for a type that
/// the macro refuses. `Codable` encodes an enum case as an object with one member: its key is
/// the case's name, and its value is an object of the fields.
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
/// A record of fixed size is fastest: it is one copy in each direction, and needs no memory of its own.
///
/// ```swift
/// struct Tick: Codable, Sendable {
///     var fields: SIMD4<UInt64>
///
///     init(from decoder: any Decoder) throws {
///         let data = try decoder.singleValueContainer().decode(Data.self)
///         guard data.count == 32 else {
///             throw DecodingError.dataCorrupted(
///                 .init(codingPath: decoder.codingPath, debugDescription: "a tick has 32 bytes"))
///         }
///         fields = data.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
///     }
///
///     func encode(to encoder: any Encoder) throws {
///         var container = encoder.singleValueContainer()
///         try container.encode(withUnsafeBytes(of: fields) { Data($0) })
///     }
/// }
///
/// extension Tick: CompactCodable {
///     func write(to output: inout CompactOutput) {
///         withUnsafeBytes(of: fields) { output.write($0.bytes) }
///     }
///
///     init(from input: inout CompactInput) throws(CompactMismatch) {
///         fields = try input.bytes { (bytes) throws(CompactMismatch) in
///             guard bytes.byteCount == 32 else { throw CompactMismatch() }
///             return bytes.unsafeLoadUnaligned(as: SIMD4<UInt64>.self)
///         }
///     }
/// }
/// ```
///
/// *What must hold*: the bytes are the same as those of `Codable`. So write the fields in the order of their
/// keys' UTF-8 bytes, each once, and leave out an optional that is nil. Then programs that read the action
/// through `Codable`, the command line and the log all read the same value. Test it with
/// `CompactForm.difference(of:)` of `ConfluxTesting`.
///
/// *Limits*: at most ``CompactOutput/keysMax`` keys, at most 512 bytes, and fields in the order in which
/// ``init(from:)`` reads them. Beyond these, `Codable` does the work. It also reports what is wrong with
/// invalid bytes.
public protocol CompactCodable: Codable {
    /// Writes the value. Called on any thread.
    ///
    /// - Parameter output: Takes one value.
    func write(to output: inout CompactOutput)

    /// Reads a value. Called on any thread, with bytes from untrusted senders.
    ///
    /// - Parameter input: Has one value, which must be read to its end.
    /// - Throws: ``CompactMismatch`` if the bytes are not the expected ones: then `Codable` reads them.
    init(from input: inout CompactInput) throws(CompactMismatch)
}

/// Bytes take a copy in each direction, whatever their number.
extension Data: CompactCodable {
    /// Writes the bytes as a whole value.
    public func write(to output: inout CompactOutput) {
        withUnsafeBytes { output.write($0.bytes) }
    }

    /// Reads bytes that are the whole value.
    public init(from input: inout CompactInput) throws(CompactMismatch) {
        self = try input.bytes { bytes in
            bytes.withUnsafeBytes { $0.baseAddress.map { Data(bytes: $0, count: bytes.byteCount) } }
                ?? Data()
        }
    }
}

/// Thrown if the bytes are not what a ``CompactCodable`` expects.
public struct CompactMismatch: Error, Sendable, Hashable {
    /// Makes the error.
    @inlinable
    public init() {}
}
