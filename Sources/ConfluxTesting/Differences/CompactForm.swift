import Conflux

/// Compares the handwritten coding of a `CompactCodable` with its `Codable`.
public enum CompactForm {
    /// Returns how the two differ. Call it in a test with at least one value of each case:
    ///
    /// ```swift
    /// for move in [Move.stop, .go(speed: 3, to: "home")] {
    ///     #expect(CompactForm.difference(of: move) == nil)
    /// }
    /// ```
    ///
    /// - Parameter value: A value, which must not be too large for the handwritten coding.
    /// - Returns: What is wrong; nil if both write the same bytes, and the handwritten coding reads
    ///   them back as the same value.
    public static func difference<Value: CompactCodable & Sendable>(of value: Value) -> String? {
        let coder = ActionCoder<Value>()
        guard let quick = coder.quick, let hand = write(value, quick) else {
            return "\(value) can't be written by hand: it has too many bytes or keys"
        }
        do throws(CodingFailure) {
            let plain = try coder.encodeByTape(value, as: .compact)
            guard hand == plain else {
                return "\(value) has the bytes \(text(hand)), and by Codable \(text(plain))"
            }
            guard let again = read(hand, quick).flatMap({ write($0, quick) }) else {
                return "\(value) is not read from the bytes that it wrote, \(text(hand))"
            }
            return again == hand ? nil : "\(value) is read as another value, of \(text(again))"
        } catch {
            return "\(value) can't be encoded by Codable: \(error)"
        }
    }

    private static func write<Value>(_ value: Value, _ quick: QuickCoding<Value>) -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: QuickCodingLimits.bytesMax) {
            $1 = quick.write(value, to: UnsafeMutableRawBufferPointer($0)) ?? 0
        }
        return bytes.isEmpty ? nil : bytes
    }

    private static func read<Value>(_ bytes: [UInt8], _ quick: QuickCoding<Value>) -> Value? {
        let place = UnsafeMutablePointer<Value>.allocate(capacity: 1)
        defer { place.deallocate() }
        return bytes.withUnsafeBufferPointer { quick.read($0, into: place) } ? place.move() : nil
    }

    private static func text(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: " ")
    }
}
