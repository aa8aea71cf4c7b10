/// The bytes from which a ``CompactCodable`` reads itself. It never reads beyond their end, whatever they
/// contain.
public struct CompactInput: ~Copyable {
    @usableFromInline let bytes: UnsafeBufferPointer<UInt8>
    @usableFromInline var position = 1
    @usableFromInline var keys = CompactKeys()
    /// How many values contain the next one.
    @usableFromInline var depth = 0

    /// Begins after the format byte; nil if the format is another one.
    init?(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard bytes.first == CompactFormat.format else { return nil }
        self.bytes = bytes
    }

    /// Whether everything was read.
    var isAtEnd: Bool { position == bytes.count }

    /// Reads the beginning of an enum case, if the next value has this name and so many fields. The fields
    /// follow. Otherwise it reads nothing.
    ///
    /// - Parameters:
    ///   - name: The case's name.
    ///   - fields: How many fields it has.
    /// - Returns: Whether it was read.
    @inlinable
    public mutating func isCase(_ name: StaticString, fields: Int) -> Bool {
        let start = position
        let known = keys.count
        if head(0x80) == 1, isKey(name), head(0x80) == UInt64(fields) { return true }
        position = start
        keys.count = known
        return false
    }

    /// Reads the beginning of an object with so many fields.
    ///
    /// - Throws: ``CompactMismatch`` if the next value is another one.
    @inlinable
    public mutating func beginObject(fields: Int) throws(CompactMismatch) {
        guard head(0x80) == UInt64(fields) else { throw CompactMismatch() }
    }

    /// Reads the beginning of an object that is a field.
    ///
    /// - Throws: ``CompactMismatch`` if the next value is another one.
    @inlinable
    public mutating func beginObject(
        fields: Int, forKey key: StaticString
    ) throws(CompactMismatch) {
        try readKey(key)
        try beginObject(fields: fields)
    }

    /// Reads an integer.
    ///
    /// - Returns: The number.
    /// - Throws: ``CompactMismatch`` if the next value is another one, or out of the type's range.
    @inlinable
    public mutating func integer<Number: FixedWidthInteger>(
        _ type: Number.Type = Number.self, forKey key: StaticString
    ) throws(CompactMismatch) -> Number {
        try readKey(key)
        return try integer(type)
    }

    /// Reads an integer that is the whole value.
    @inlinable @inline(__always)
    mutating func integer<Number: FixedWidthInteger>(
        _ type: Number.Type
    ) throws(CompactMismatch) -> Number {
        let number: Number?
        if let natural = head(0x10) {
            number = Number(exactly: natural)
        } else if let negative = head(0x20), negative < 1 << 63 {
            number = Number(exactly: ~Int64(bitPattern: negative))
        } else {
            number = nil
        }
        guard Number.bitWidth <= 64, let number else { throw CompactMismatch() }
        return number
    }

    /// Reads a boolean.
    ///
    /// - Returns: The value.
    /// - Throws: ``CompactMismatch`` if the next value is another one.
    @inlinable
    public mutating func bool(forKey key: StaticString) throws(CompactMismatch) -> Bool {
        try readKey(key)
        return try bool()
    }

    @inlinable @inline(__always)
    mutating func bool() throws(CompactMismatch) -> Bool {
        guard let value = head(0), value == 1 || value == 2 else { throw CompactMismatch() }
        return value == 2
    }

    /// Reads a floating-point number.
    ///
    /// - Returns: The number.
    /// - Throws: ``CompactMismatch`` if the next value is another one.
    @inlinable
    public mutating func double(forKey key: StaticString) throws(CompactMismatch) -> Double {
        try readKey(key)
        return try double()
    }

    @inlinable @inline(__always)
    mutating func double() throws(CompactMismatch) -> Double {
        guard bytes.count - position >= 9, bytes[position] == 0x30 else { throw CompactMismatch() }
        let bits = UnsafeRawBufferPointer(bytes).loadUnaligned(
            fromByteOffset: position + 1, as: UInt64.self)
        let value = Double(bitPattern: UInt64(littleEndian: bits))
        guard value.isFinite else { throw CompactMismatch() }
        position += 9
        return value
    }

    @inlinable @inline(__always)
    mutating func float() throws(CompactMismatch) -> Float {
        guard bytes.count - position >= 5, bytes[position] == 0x40 else { throw CompactMismatch() }
        let bits = UnsafeRawBufferPointer(bytes).loadUnaligned(
            fromByteOffset: position + 1, as: UInt32.self)
        let value = Float(bitPattern: UInt32(littleEndian: bits))
        guard value.isFinite else { throw CompactMismatch() }
        position += 5
        return value
    }

    /// Reads a text.
    ///
    /// - Returns: The text.
    /// - Throws: ``CompactMismatch`` if the next value is another one.
    @inlinable
    public mutating func string(forKey key: StaticString) throws(CompactMismatch) -> String {
        try readKey(key)
        return try string()
    }

    @inlinable @inline(__always)
    mutating func string() throws(CompactMismatch) -> String {
        guard let length = head(0x50), length <= UInt64(bytes.count - position),
            let text = String(
                validating: bytes[position..<position + Int(length)], as: UTF8.self)
        else { throw CompactMismatch() }
        position += Int(length)
        return text
    }

    /// Reads bytes that are the whole value.
    ///
    /// - Parameter body: Makes something of the bytes, whose number the sender chose.
    /// - Returns: What `body` returned.
    /// - Throws: ``CompactMismatch`` if the value is another one; what `body` throws.
    @inlinable
    public mutating func bytes<Value>(
        _ body: (RawSpan) throws(CompactMismatch) -> Value
    ) throws(CompactMismatch) -> Value {
        guard let length = head(0x60), length <= UInt64(bytes.count - position) else {
            throw CompactMismatch()
        }
        let end = position + Int(length)
        let value = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[position..<end])
        position = end
        return try body(value.bytes)
    }

    /// Reads bytes.
    ///
    /// - Parameters:
    ///   - key: The field's key.
    ///   - body: Makes something of the bytes, whose number the sender chose.
    /// - Returns: What `body` returned.
    /// - Throws: ``CompactMismatch`` if the next value is another one; what `body` throws.
    @inlinable
    public mutating func bytes<Value>(
        forKey key: StaticString, _ body: (RawSpan) throws(CompactMismatch) -> Value
    ) throws(CompactMismatch) -> Value {
        try readKey(key)
        return try bytes(body)
    }

    // MARK: Bytes

    /// Reads a head of one kind. If the next head has another kind, reads nothing.
    @inlinable @inline(__always)
    mutating func head(_ kind: UInt8) -> UInt64? {
        guard position < bytes.count, bytes[position] & 0xF0 == kind else { return nil }
        let argument = UInt64(bytes[position] & 0xF)
        guard argument == 15 else {
            position += 1
            return argument
        }
        return longArgument()
    }

    /// Reads an argument that follows the head: a varint in its shortest form, plus 15.
    @usableFromInline
    mutating func longArgument() -> UInt64? {
        var next = position + 1
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while next < bytes.count {
            let byte = bytes[next]
            next += 1
            guard shift < 63 || byte <= 1 else { return nil }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 {
                let (argument, isTooLarge) = value.addingReportingOverflow(15)
                guard byte != 0 || shift == 0, !isTooLarge else { return nil }
                position = next
                return argument
            }
            shift += 7
        }
        return nil
    }

    @inlinable @inline(__always)
    mutating func readKey(_ key: StaticString) throws(CompactMismatch) {
        guard isKey(key) else { throw CompactMismatch() }
    }

    /// Reads a key, or the number of a key that came before. If the next key is another one, reads nothing.
    @inlinable @inline(__always)
    mutating func isKey(_ key: StaticString) -> Bool {
        guard position < bytes.count else { return false }
        let code = Int(bytes[position])
        let text = UnsafeRawBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount)
        if code & 1 == 1 {
            guard code >> 1 < keys.count else { return false }
            let (start, length) = keys[code >> 1]
            guard text.elementsEqual(bytes[start..<start + length]) else { return false }
            position += 1
            return true
        }
        let start = position + 1
        // The length of a key of less than 64 bytes fits in one byte.
        guard text.count < 64, code >> 1 == text.count, text.count <= bytes.count - start,
            text.elementsEqual(bytes[start..<start + text.count]), keys.add(at: start, text.count)
        else { return false }
        position = start + text.count
        return true
    }
}
