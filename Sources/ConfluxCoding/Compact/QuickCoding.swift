import Foundation

/// The compact coding of one action type without a tape, between memory and memory.
///
/// *Invariant*: it writes what ``CompactWriter`` writes, and reads nothing that ``CompactReader`` refuses. What it
/// can't do, the tape does, and says what is wrong.
// Sendable: neither it nor a subclass has anything that changes.
package class QuickCoding<Action>: @unchecked Sendable {
    fileprivate init() {}

    /// Writes an action.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - buffer: Where to write it.
    /// - Returns: How many bytes it has; nil if it can't be written there.
    package func write(_ action: Action, to buffer: UnsafeMutableRawBufferPointer) -> Int? {
        preconditionFailure("a quick coding writes")
    }

    /// Reads an action.
    ///
    /// - Parameters:
    ///   - bytes: The payload.
    ///   - place: Where the action is made; it is not initialised before.
    /// - Returns: Whether it was made.
    package func read(
        _ bytes: UnsafeBufferPointer<UInt8>, into place: UnsafeMutablePointer<Action>
    ) -> Bool {
        preconditionFailure("a quick coding reads")
    }

    /// The coding of a type; nil if it has none.
    static func find() -> QuickCoding? {
        // Found by the type, so each is what it is taken for.
        if Action.self == Data.self { return unsafeDowncast(DataCoding(), to: QuickCoding.self) }
        guard let type = Action.self as? any CompactCodable.Type else { return nil }
        return unsafeDowncast(handCoding(type), to: QuickCoding.self)
    }

    private static func handCoding<Value: CompactCodable>(_ type: Value.Type) -> AnyObject {
        HandCoding<Value>()
    }
}

package enum QuickCodingLimits {
    /// The most bytes of an action that is written on a stack. What has more goes the longer way.
    package static let bytesMax = 512
}

/// Of bytes and nothing else: one copy each way.
// Sendable: it has nothing.
private final class DataCoding: QuickCoding<Data>, @unchecked Sendable {
    override func write(_ action: Data, to buffer: UnsafeMutableRawBufferPointer) -> Int? {
        CompactBytes.write(action, to: buffer)
    }

    override func read(
        _ bytes: UnsafeBufferPointer<UInt8>, into place: UnsafeMutablePointer<Data>
    ) -> Bool {
        guard let data = CompactBytes.read(UnsafeRawBufferPointer(bytes)) else { return false }
        place.initialize(to: data)
        return true
    }
}

/// Of a type that writes and reads itself.
// Sendable: it has nothing.
private final class HandCoding<Value: CompactCodable>: QuickCoding<Value>, @unchecked Sendable {
    override func write(_ action: Value, to buffer: UnsafeMutableRawBufferPointer) -> Int? {
        var output = CompactOutput(buffer)
        action.write(to: &output)
        return output.isWhole ? output.count : nil
    }

    override func read(
        _ bytes: UnsafeBufferPointer<UInt8>, into place: UnsafeMutablePointer<Value>
    ) -> Bool {
        guard var input = CompactInput(bytes) else { return false }
        do throws(CompactMismatch) {
            place.initialize(to: try Value(from: &input))
        } catch {
            return false
        }
        guard input.isAtEnd else {
            place.deinitialize(count: 1)
            return false
        }
        return true
    }
}
