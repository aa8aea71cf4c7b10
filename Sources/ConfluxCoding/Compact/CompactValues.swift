import Foundation

// The values that fields of a `CompactCodable` have. Each writes what `Codable` writes of it.

extension CompactCodable where Self: FixedWidthInteger {
    /// Writes the number as a whole value.
    @inlinable
    public func write(to output: inout CompactOutput) { output.write(integer: self) }

    /// Reads a number that is the whole value.
    @inlinable
    public init(from input: inout CompactInput) throws(CompactMismatch) {
        self = try input.integer(Self.self)
    }
}

extension Int: CompactCodable {}
extension Int8: CompactCodable {}
extension Int16: CompactCodable {}
extension Int32: CompactCodable {}
extension Int64: CompactCodable {}
extension UInt: CompactCodable {}
extension UInt8: CompactCodable {}
extension UInt16: CompactCodable {}
extension UInt32: CompactCodable {}
extension UInt64: CompactCodable {}

extension Bool: CompactCodable {
    /// Writes the boolean as a whole value.
    @inlinable
    public func write(to output: inout CompactOutput) { output.write(bool: self) }

    /// Reads a boolean that is the whole value.
    @inlinable
    public init(from input: inout CompactInput) throws(CompactMismatch) { self = try input.bool() }
}

extension String: CompactCodable {
    /// Writes the text as a whole value.
    @inlinable
    public func write(to output: inout CompactOutput) { output.write(string: self) }

    /// Reads a text that is the whole value.
    @inlinable
    public init(from input: inout CompactInput) throws(CompactMismatch) {
        self = try input.string()
    }
}

extension Double: CompactCodable {
    /// Writes the number as a whole value.
    @inlinable
    public func write(to output: inout CompactOutput) { output.write(double: self) }

    /// Reads a number that is the whole value.
    @inlinable
    public init(from input: inout CompactInput) throws(CompactMismatch) {
        self = try input.double()
    }
}

extension Float: CompactCodable {
    /// Writes the number as a whole value.
    @inlinable
    public func write(to output: inout CompactOutput) { output.write(float: self) }

    /// Reads a number that is the whole value.
    @inlinable
    public init(from input: inout CompactInput) throws(CompactMismatch) { self = try input.float() }
}

extension Date: CompactCodable {
    /// Writes the seconds since the start of 2001 UTC.
    public func write(to output: inout CompactOutput) {
        output.write(double: timeIntervalSinceReferenceDate)
    }

    /// Reads the seconds since the start of 2001 UTC.
    public init(from input: inout CompactInput) throws(CompactMismatch) {
        self.init(timeIntervalSinceReferenceDate: try input.double())
    }
}

extension UUID: CompactCodable {
    /// Writes the text of the identifier.
    public func write(to output: inout CompactOutput) { output.write(string: uuidString) }

    /// Reads the text of an identifier.
    public init(from input: inout CompactInput) throws(CompactMismatch) {
        guard let value = UUID(uuidString: try input.string()) else { throw CompactMismatch() }
        self = value
    }
}

extension Array: CompactCodable where Element: CompactCodable {
    /// Writes the elements.
    @inlinable
    public func write(to output: inout CompactOutput) {
        output.head(0x70, UInt64(count))
        for element in self {
            // What does not fit is not written, however much it is.
            guard output.isWhole else { return }
            element.write(to: &output)
        }
    }

    /// Reads the elements.
    @inlinable
    public init(from input: inout CompactInput) throws(CompactMismatch) {
        self = []
        // The number is only believed as far as there are elements.
        guard let count = input.head(0x70) else { throw CompactMismatch() }
        var left = count
        while left > 0 {
            append(try input.nested())
            left -= 1
        }
    }
}
