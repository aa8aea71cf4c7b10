/// The compact coding of one action type without a tape, directly between values and memory.
///
/// *Invariant*: it writes what ``CompactWriter`` writes, and reads nothing that ``CompactReader`` refuses. In
/// all other cases the tape is used, and reports what is wrong.
// Sendable: neither this class nor a subclass has mutable state.
package class QuickCoding<Action>: @unchecked Sendable {
    /// Makes a coding that writes and reads nothing.
    package init() {}

    /// Writes an action.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - buffer: The memory to write to.
    /// - Returns: How many bytes were written; nil if the action can't be written there.
    package func write(_ action: Action, to buffer: UnsafeMutableRawBufferPointer) -> Int? { nil }

    /// Reads an action.
    ///
    /// - Parameters:
    ///   - bytes: The payload.
    ///   - place: Uninitialised memory for the action.
    /// - Returns: Whether the action was read and the memory is initialised.
    package func read(
        _ bytes: UnsafeBufferPointer<UInt8>, into place: UnsafeMutablePointer<Action>
    ) -> Bool { false }

    /// The coding of a type; nil if it has none.
    static func find() -> QuickCoding? {
        guard let type = Action.self as? any CompactCodable.Type else { return nil }
        // The type is the same, so the cast is safe.
        return unsafeDowncast(handCoding(type), to: QuickCoding.self)
    }

    private static func handCoding<Value: CompactCodable>(_ type: Value.Type) -> AnyObject {
        HandCoding<Value>()
    }
}

package enum QuickCodingLimits {
    /// The most bytes of an action that is written on the stack. A larger one goes through a tape.
    package static let bytesMax = 512
}

/// The coding of a type that writes and reads itself.
// Sendable: it has no state.
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
